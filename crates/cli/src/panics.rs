//! A panic: a bug of this program, reported in a few lines.
//!
//! The message of the panic is not shown. It is made for developers, and may quote any data: a
//! header, a body, a secret.

use std::io::Write as _;
use std::panic::{self, PanicHookInfo};

/// Says it in place of the standard library. A panic's exit code stays 101.
pub(crate) fn install() {
    panic::set_hook(Box::new(|info| {
        // Where no reader is left, a second panic would not help.
        let _ = std::io::stderr().write_all(request(info).as_bytes());
    }));
}

/// The text that is printed for a panic.
pub(crate) fn request(info: &PanicHookInfo<'_>) -> String {
    let place = info
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    format!(
        "hookgate: a bug of hookgate {}, at {place}\n  please report this line and what you asked for, without secrets and bodies\n",
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    const SECRET: &str = "whsec_made_up_in_a_panic";

    /// Not a test of its own: the test below starts it.
    #[test]
    #[ignore = "panics on purpose, for the test beside it"]
    fn panics_with_a_secret() {
        super::install();
        panic!("{SECRET}");
    }

    #[test]
    fn a_panic_asks_for_a_report_and_shows_nothing() {
        let itself = std::env::current_exe().unwrap();
        let child = Command::new(itself)
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("panics::tests::panics_with_a_secret")
            .output()
            .unwrap();
        let stderr = String::from_utf8(child.stderr).unwrap();
        assert!(stderr.contains("a bug of hookgate 0."), "{stderr}");
        assert!(stderr.contains("panics.rs:"), "{stderr}");
        assert!(!stderr.contains(SECRET), "{stderr}");
        assert!(!child.status.success());
    }
}
