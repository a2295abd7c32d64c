//! Errors of a command: the message, the advice, and the exit code for scripts.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::printable::{printable, printable_json};

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the answer is yes: authentic, all delivered, nothing to fix
  1  done, and the answer is no: not authentic, an event not handled, a setting to fix
  2  the command line is wrong, or the command was left out of this build
  3  something can't be read or written: a file, a line of a log, a body, standard output
  4  the other side can't be reached, or an address can't be listened on
  5  no secret, or one that can't be right
  101  a bug of hookgate itself, which says so and asks for a report
  130  interrupted by Ctrl-C

Nobody reading any more what is printed, as behind `| head`, is not a fault: 0.";

/// Whether messages on standard error are JSON too.
static IN_JSON: AtomicBool = AtomicBool::new(false);

pub(crate) fn use_json() {
    IN_JSON.store(true, Ordering::Relaxed);
}

/// By convention 128 and the number of the signal.
pub(crate) const INTERRUPTED: u8 = 130;

/// The class of a fault, which is its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Class {
    Usage = 2,
    Input = 3,
    Network = 4,
    Secret = 5,
    /// Ctrl-C. The user has pressed it and needs no message.
    Interrupted = INTERRUPTED,
    /// The reader of the output has closed the pipe: no fault at all.
    ClosedPipe = 0,
}

/// The reason why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Fault {
    class: Class,
    message: String,
    advice: Option<String>,
}

/// The result of a command that has done its work.
pub(crate) fn answer(yes: bool) -> ExitCode {
    ExitCode::from(u8::from(!yes))
}

impl Fault {
    pub(crate) fn new(class: Class, message: impl Into<String>) -> Self {
        Self {
            class,
            message: message.into(),
            advice: None,
        }
    }

    /// Makes a fault from an error and all its sources.
    pub(crate) fn caused_by(class: Class, message: &str, error: &dyn Error) -> Self {
        Self::new(class, format!("{message}: {}", chain(error)))
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(Class::Interrupted, "")
    }

    /// Adds advice for the user.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    pub(crate) fn is_of_network(&self) -> bool {
        matches!(self.class, Class::Network)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.advice.as_deref()
    }

    /// The exit code of the command.
    pub(crate) fn code(&self) -> u8 {
        self.class as u8
    }

    pub(crate) fn report(self) -> ExitCode {
        if !matches!(self.class, Class::ClosedPipe | Class::Interrupted) {
            // A message that can't be written is not worth a panic.
            let _ = self.write();
        }
        ExitCode::from(self.code())
    }

    fn write(&self) -> io::Result<()> {
        let advice = self.advice.as_deref();
        say("error", "hookgate: ", &self.message, advice)
    }
}

/// An error and all its sources.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(error) = below {
        let _ = write!(text, ": {error}");
        below = error.source();
    }
    text
}

/// Prints a warning: no fault, but the user should know it. It goes to standard error, as faults
/// do.
pub(crate) fn warn(message: &str, advice: &str) {
    // A message that can't be written is not worth a panic.
    let _ = say("warning", "hookgate: warning: ", message, Some(advice));
}

/// Prints a note for the user. It goes to standard error, so that it does not mix with the output.
pub(crate) fn note(message: &str) {
    let _ = say("note", "note: ", message, None);
}

/// A message may hold paths, names and answers of the other side, so no part of it reaches a
/// terminal unescaped.
fn say(kind: &str, before: &str, message: &str, advice: Option<&str>) -> io::Result<()> {
    let mut stderr = io::stderr().lock();
    let (message, advice) = (without_secrets(message), advice.map(without_secrets));
    if IN_JSON.load(Ordering::Relaxed) {
        let said = serde_json::json!({ kind: message, "advice": advice }).to_string();
        return writeln!(stderr, "{}", printable_json(&said));
    }
    let mut text = format!("{before}{}\n", printable(&message));
    if let Some(advice) = advice {
        let _ = writeln!(text, "  {}", printable(&advice));
    }
    stderr.write_all(text.as_bytes())
}

/// A user easily passes a secret in place of the name of its variable or file, or as another
/// argument.
pub(crate) fn without_secrets(text: &str) -> String {
    const PREFIX: &str = "whsec_";
    let mut parts = text.split(PREFIX);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|char: char| !char.is_ascii_alphanumeric() && !"+/=_-".contains(char));
        let rest = &part[end.unwrap_or(part.len())..];
        shown.push_str(PREFIX);
        // In a sentence, nothing follows the prefix.
        if rest.len() < part.len() {
            shown.push('…');
        }
        shown.push_str(rest);
    }
    shown
}

/// Errors of writing to standard output, the one place where errors are passed on unchanged.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Class::ClosedPipe, "");
        }
        Self::caused_by(Class::Input, "standard output can't be written", &error)
    }
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn what_looks_like_a_secret_is_not_repeated() {
        for (text, shown) in [
            ("whsec_made_up+/=: not set", "whsec_…: not set"),
            ("'whsec_a' or 'whsec_b-c'", "'whsec_…' or 'whsec_…'"),
            ("whsec_ and what follows", "whsec_ and what follows"),
            ("the whole whsec_… text", "the whole whsec_… text"),
            ("nothing of it", "nothing of it"),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
    }
}
