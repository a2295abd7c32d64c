use super::*;

#[test]
fn the_sample_is_a_seed() {
    assert_eq!(Seed::orders().0.data_models.len(), 2);
}
