//! Errors of a replay of a log.

use std::error::Error;
use std::fmt;

/// The reason why a replay could not begin or continue. The message says how to solve it.
///
/// The results of the replayed deliveries are not errors: they are in the report.
pub struct ReplayError {
    kind: ReplayErrorKind,
    lines: Vec<usize>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of errors of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ReplayErrorKind {
    /// There is no delivery to replay: the log is empty, or no delivery of it was selected.
    Empty,
    /// No secret was given.
    NoSecret,
    /// The secrets can't be used together; the source has the reason, where there is one.
    Keys,
    /// Deliveries whose signed bytes were redacted can't be replayed with their recorded signature.
    Unverifiable,
    /// Deliveries that were authentic when they were recorded are authentic with none of the given secrets.
    WrongSecret,
    /// A delivery can't be converted to a request: HTTP does not know its method, target or header, or its time can't be
    /// signed.
    Unsendable,
    /// Tokio's time is not paused, so the recorded gaps would pass in real time.
    TimeNotPaused,
    /// The receiver has deduplication switched off: it makes no commits for the replay to see.
    NoDeduplication,
    /// The receiver's settings were refused; the source has the reason.
    Settings,
    /// The closure that makes the app failed; the source has the reason.
    App,
    /// The closure has taken no layer and no receiver from the harness.
    NoReceiver,
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

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ReplayErrorKind {
        self.kind
    }

    /// The bad lines of the log, counted from 1, where there are some.
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
            Self::TimeNotPaused => {
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
        }
    }
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.message())?;
        // Limits the length of the message for a long log.
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

/// A failing test prints this form: the advice must be part of it.
impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplayError({:?}): {self}", self.kind)?;
        let mut below = self.source();
        while let Some(source) = below {
            write!(f, ": {source}")?;
            below = source.source();
        }
        Ok(())
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}
