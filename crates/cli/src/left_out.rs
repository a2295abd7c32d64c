//! Answers a command that needs a feature which this build does not have.

use std::ffi::OsString;

use crate::fault::{Class, Fault};

/// The arguments of a command that was left out, its options and `--help` included. Nothing reads
/// them.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct LeftOut {
    /// Anything
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn left_out(what: &str, feature: &str) -> Fault {
    let message =
        format!("this hookgate was built without {what}, which its feature `{feature}` brings");
    Fault::new(Class::Usage, message).advise(format!(
        "install it again: cargo install --path crates/cli --features {feature}, or --features full for all"
    ))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn whatever_follows_a_command_that_was_left_out_is_taken_and_the_feature_is_named() {
        let command = LeftOut::augment_args(Command::new("inbox"));
        for line in [
            &["inbox"][..],
            &["inbox", "--help"],
            &["inbox", "list", "--db", "inbox.db"],
        ] {
            assert!(
                command.clone().try_get_matches_from(line).is_ok(),
                "{line:?}"
            );
        }
        let fault = left_out("the command inbox", "sqlite");
        let message =
            "this hookgate was built without the command inbox, which its feature `sqlite` brings";
        assert_eq!((fault.code(), fault.message()), (2, message));
        assert!(
            fault
                .advice()
                .is_some_and(|advice| advice.contains("--features sqlite, or --features full"))
        );
    }
}
