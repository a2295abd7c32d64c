//! Tests of a build with the default features, which leaves commands out: `cargo test -p hookgate-cli left_out`.

use crate::cli::Ran;

#[test]
fn a_command_that_was_left_out_names_the_feature_that_brings_it() {
    for (line, feature) in [
        (&["inbox", "list", "--db", "inbox.db"][..], "sqlite"),
        (&["inbox", "--help"], "sqlite"),
        (&["reconcile", "--model", "dm_orders"], "sqlite"),
    ] {
        let ran = Ran::of(line);
        let names = format!(
            "hookgate: this hookgate was built without the command {}",
            line[0]
        );
        assert!(
            ran.code == Some(2) && ran.stderr.starts_with(&names),
            "{ran:?}"
        );
        let install = format!("cargo install --path crates/cli --features {feature}");
        assert!(ran.stderr.contains(&install), "{ran:?}");
    }
    let help = Ran::of(&["--help"]);
    assert_eq!(
        help.stdout.matches("Not in this build").count(),
        2,
        "{help:?}"
    );
}
