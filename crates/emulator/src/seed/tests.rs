use super::*;

#[test]
fn the_sample_is_a_seed() {
    assert_eq!(Seed::orders().0.data_models.len(), 2);
}

/// A column of dates sorts by its text only where all values have one form.
#[test]
fn the_dates_of_the_sample_have_one_form() {
    let file = &Seed::orders().0;
    let models = file.data_models.iter();
    let rows = models.flat_map(|model| model.rows.as_slice());
    let dates = rows.filter_map(|row| row.data.get("prop_due")?.as_str());
    assert_eq!(dates.map(str::len).collect::<Vec<_>>(), [10, 10]);
}
