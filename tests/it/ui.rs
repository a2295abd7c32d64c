//! What must not compile.

#[test]
fn proofs_cannot_be_forged_nor_secrets_shown() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
