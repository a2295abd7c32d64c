//! Tests of a build with the default features, which leaves commands out:
//! `cargo test -p hookgate-cli left_out`.

use crate::cli::Ran;

#[test]
fn a_command_that_was_left_out_names_the_feature_that_brings_it() {
    for (line, feature) in [
        ("inbox list --db inbox.db", "sqlite"),
        ("inbox --help", "sqlite"),
        ("reconcile --model dm_orders", "sqlite"),
    ] {
        let ran = Ran::typed(line).ends(2);
        let command = line.split(' ').next().unwrap();
        let names = format!("hookgate: this hookgate was built without the command {command}");
        assert!(ran.stderr.starts_with(&names), "{ran:?}");
        ran.tells(&[&format!(
            "cargo install --path crates/cli --features {feature}"
        )]);
    }
    let help = Ran::of(&["--help"]);
    let left_out = help.stdout.matches("Not in this build").count();
    assert_eq!(left_out, 2, "{help:?}");
}
