//! Code that must not compile. The compiler's messages are compared too, so this runs with the
//! compiler that they were taken from; the `compile_fail` examples in the documentation of
//! `Verified` and `Event` hold for any.

#![allow(clippy::print_stdout)] // a test says why it compared nothing

#[test]
fn proofs_cannot_be_forged_nor_secrets_shown() {
    const TAKEN_FROM: &str = "rustc 1.95.";
    let version = std::process::Command::new("rustc")
        .arg("--version")
        .output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    if !matches!(&version, Ok(version) if version.starts_with(TAKEN_FROM)) {
        println!("compared with {TAKEN_FROM}x only, and this is {version:?}");
        return;
    }
    let cases = trybuild::TestCases::new();
    cases.compile_fail("cases/*.rs");
}
