//! Errors of a replay of a log.

use std::error::Error;
use std::fmt;

use crate::messages::chain;

/// The reason why a replay could not begin or continue. The message says how to solve it.
///
/// The results of the replayed deliveries are not errors: they are in the report.
#[derive(thiserror::Error)]
#[error("{kind}{}", named(lines))]
pub struct ReplayError {
    kind: ReplayErrorKind,
    lines: Vec<usize>,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of errors of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayErrorKind {
    /// There is no delivery to replay: the log is empty, or no delivery of it was selected.
    #[error("the log holds no delivery to replay")]
    Empty,
    /// No secret was given.
    #[error("no secret: call .secret(…) or .subscription(id, …) with those of the log")]
    NoSecret,
    /// The secrets can't be used together; the source has the reason, where there is one.
    #[error("the secrets can't be used together: one ring, or a secret for each subscription")]
    Keys,
    /// Deliveries whose signed bytes were redacted can't be replayed with their recorded signature.
    #[error(
        "redacted deliveries have lost the bytes that were signed: call .resign_unverifiable(), or .resigned()"
    )]
    Unverifiable,
    /// Deliveries that were authentic when they were recorded are authentic with none of the given
    /// secrets.
    #[error(
        "deliveries that were authentic when recorded are so under none of these secrets: give those of the log"
    )]
    WrongSecret,
    /// A delivery can't be converted to a request: HTTP does not know its method, target or header,
    /// or its time can't be signed.
    #[error("deliveries that can't be made a request")]
    Unsendable,
    /// Tokio's time is not paused, so the recorded gaps would pass in real time.
    #[error(
        "tokio's time is not paused: use #[tokio::test(start_paused = true)], or call .in_real_time(…)"
    )]
    TimeNotPaused,
    /// The receiver has deduplication switched off: it makes no commits for the replay to see.
    #[error(
        "a receiver .without_deduplication() commits nothing that a replay could see: give it a .store(…)"
    )]
    NoDeduplication,
    /// The receiver's settings were refused; the source has the reason.
    #[error("the receiver's settings were refused")]
    Settings,
    /// The closure that makes the app failed; the source has the reason.
    #[error("the closure has made no app")]
    App,
    /// The closure has taken no layer and no receiver from the harness.
    #[error("the app was made without the harness: guard its route with harness.layer(…)")]
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

/// `: line 3, 7`, of so many that a message stays short.
fn named(lines: &[usize]) -> String {
    const SHOWN: usize = 10;
    let mut text = String::new();
    for (index, line) in lines.iter().take(SHOWN).enumerate() {
        text.push_str(if index == 0 { ": line " } else { ", " });
        text.push_str(&line.to_string());
    }
    match lines.len().saturating_sub(SHOWN) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// A failing test prints this form: the advice must be part of it.
impl fmt::Debug for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplayError({:?}): {}", self.kind, chain(self))
    }
}
