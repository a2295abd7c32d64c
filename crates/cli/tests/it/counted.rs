//! The packages that the command is built of.

use crate::packages::{counts, readme_counts, rust_versions, tree};

#[test]
fn the_commands_packages_are_counted_right_and_ask_for_no_newer_rust() {
    let of = rust_versions(&[
        "crates/cli",
        "crates/client",
        "crates/testing",
        "crates/emulator",
    ]);
    readme_counts("the command", &["-p", "hookgate-cli"], &of);
    readme_counts("tools for tests", &["-p", "hookgate-testing"], &of);
    readme_counts(
        "the service on your machine",
        &["-p", "hookgate-emulator"],
        &of,
    );
    readme_counts("the service's API", &["-p", "hookgate-client"], &of);
    let page = include_str!("../../../../docs/client.md");
    for (row, features) in [
        ("none", "--features="),
        ("`hyper`", "--features=hyper"),
        ("`tls`", "--features=tls"),
        ("`reconcile`", "--features=reconcile"),
        ("`metrics`", "--features=metrics"),
        ("`sqlite`", "--features=sqlite"),
        ("`postgres`", "--features=postgres"),
        ("all", "--all-features"),
    ] {
        let arguments = ["-p", "hookgate-client", "--no-default-features", features];
        counts(page, row, &arguments, &of);
    }
    let packages = tree(&["-p", "hookgate-cli", "--all-features"]);
    let own = packages.iter().find(|(name, _)| name == "hookgate-cli");
    let own = of[own.unwrap()];
    for package in &packages {
        assert!(of[package] <= own, "{package:?} asks for {:?}", of[package]);
    }
}
