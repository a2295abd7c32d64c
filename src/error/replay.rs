//! Why a log could not be replayed.

use std::error::Error;
use std::fmt;

/// Why a replay could not begin or go on. The message says what to change.
///
/// What the replayed deliveries came to is no error: that stands in the report.
pub struct ReplayError {
    kind: ReplayErrorKind,
    lines: Vec<usize>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The ways in which a replay can't be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayErrorKind {
    /// There is no delivery to replay: the log is empty, or nothing of it was asked for.
    Empty,
    /// No secret was given.
    NoSecret,
    /// The secrets can't be used together; the source says why, where there is one.
    Keys,
    /// Deliveries whose signed bytes were redacted can't be replayed with their recorded signature.
    Unverifiable,
    /// Deliveries that were authentic when they were recorded are so under none of the secrets that were given.
    WrongSecret,
    /// A delivery can't be made a request: a method, target or header that HTTP does not know, or a time that can't be signed.
    Unsendable,
    /// Tokio's time is not paused, so that recorded gaps would take as long as they took.
    TimeRuns,
    /// The receiver was told to remember nothing: there are no commits to see.
    NoDeduplication,
    /// The receiver's settings were refused; the source says why.
    Settings,
    /// The closure that makes the app failed; the source says why.
    App,
    /// The closure has asked the harness for no layer and no receiver.
    NoReceiver,
    /// The plan has faults for the handler, but no layer of the harness stands before it.
    NoFaultLayer,
}

impl ReplayError {
    pub(crate) fn new(kind: ReplayErrorKind) -> Self {
        Self {
            kind,
            lines: Vec::new(),
            source: None,
        }
    }

    pub(crate) fn of_lines(mut self, lines: Vec<usize>) -> Self {
        self.lines = lines;
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// In which way it failed.
    #[must_use]
    pub fn kind(&self) -> ReplayErrorKind {
        self.kind
    }

    /// The lines of the log that are at fault, counted from 1, where some are.
    #[must_use]
    pub fn lines(&self) -> &[usize] {
        &self.lines
    }
}

impl ReplayErrorKind {
    fn message(self) -> &'static str {
        match self {
            Self::Empty => "the log holds no delivery to replay",
            Self::NoSecret => {
                "no secret: call .secret(…) or .subscription(id, …) with those of the log"
            }
            Self::Keys => {
                "the secrets can't be used together: one ring, or a secret for each subscription"
            }
            Self::Unverifiable => {
                "redacted deliveries have lost the bytes that were signed: call .resign_unverifiable(), or .resigned()"
            }
            Self::WrongSecret => {
                "deliveries that were authentic when recorded are so under none of these secrets: give those of the log"
            }
            Self::Unsendable => "deliveries that can't be made a request",
            Self::TimeRuns => {
                "tokio's time is not paused: use #[tokio::test(start_paused = true)], or call .in_real_time(…)"
            }
            Self::NoDeduplication => {
                "a receiver .without_deduplication() commits nothing that a replay could see: give it a .store(…)"
            }
            Self::Settings => "the receiver's settings were refused",
            Self::App => "the closure has made no app",
            Self::NoReceiver => {
                "the app was made without the harness: guard its route with harness.layer(…)"
            }
            Self::NoFaultLayer => {
                "the plan has faults for the handler, but none of the harness's layers stands before it: use harness.layer(…)"
            }
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.message())?;
        // A long log must not make a long line.
        const SHOWN: usize = 10;
        for (index, line) in self.lines.iter().take(SHOWN).enumerate() {
            f.write_str(if index == 0 { ": line " } else { ", " })?;
            write!(f, "{line}")?;
        }
        match self.lines.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// As a failing test prints it: what to change must not be missing there.
impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        super::write_readably(f, "ReplayError", &self.kind, self)
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}
