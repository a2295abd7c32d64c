//! What went wrong, what to do next, and the exit code that says it to a script.

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::process::ExitCode;

pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done, and the answer is yes: authentic, all delivered, nothing to mend
  1  done, and the answer is no: not authentic, an event not handled, a setting to mend
  2  the command line is wrong
  3  something can't be read or written: a file, a line of a log, a body, standard output
  4  the other side can't be reached, or an address can't be listened on
  5  no secret, or one that can't be right
  101  a bug of hookgate itself, which says so and asks for a report
  130  interrupted by Ctrl-C
Nobody reading any more what is printed, as behind `| head`, is no fault: 0.";

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
    /// Ctrl-C. Whoever pressed it knows.
    Interrupted = INTERRUPTED,
    /// Nobody reads what is printed any more: no fault at all.
    ClosedPipe = 0,
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) struct Fault {
    class: Class,
    message: String,
    advice: Option<String>,
}

/// The answer of a command that has done its work.
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

    /// With an error and all that lies below it.
    pub(crate) fn caused_by(class: Class, message: &str, error: &dyn Error) -> Self {
        let mut text = message.to_owned();
        let mut next = Some(error);
        while let Some(error) = next {
            let _ = write!(text, ": {error}");
            next = error.source();
        }
        Self::new(class, text)
    }

    pub(crate) fn interrupted() -> Self {
        Self::new(Class::Interrupted, "")
    }

    /// What the user may do about it.
    pub(crate) fn advise(mut self, advice: impl Into<String>) -> Self {
        self.advice = Some(advice.into());
        self
    }

    /// The exit code that it ends with.
    pub(crate) fn code(&self) -> u8 {
        self.class as u8
    }

    pub(crate) fn report(self, json: bool) -> ExitCode {
        if !matches!(self.class, Class::ClosedPipe | Class::Interrupted) {
            // What can't be told is not worth a panic.
            let _ = self.write(json);
        }
        ExitCode::from(self.code())
    }

    fn write(&self, json: bool) -> io::Result<()> {
        let mut stderr = io::stderr().lock();
        if json {
            let error = serde_json::json!({ "error": self.message, "advice": self.advice });
            return writeln!(stderr, "{error}");
        }
        writeln!(stderr, "hookgate: {}", self.message)?;
        match &self.advice {
            Some(advice) => writeln!(stderr, "  {advice}"),
            None => Ok(()),
        }
    }
}

/// Says what is no fault, but should be known. To standard error, as faults are.
pub(crate) fn warn(message: &str, advice: &str) {
    // What can't be told is not worth a panic.
    let _ = writeln!(
        io::stderr().lock(),
        "hookgate: warning: {message}\n  {advice}"
    );
}

/// Of writing to standard output, which is the one place where errors are passed on as they are.
impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Class::ClosedPipe, "");
        }
        Self::caused_by(Class::Input, "standard output can't be written", &error)
    }
}
