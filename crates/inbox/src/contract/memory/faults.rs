//! What an engine in memory does wrong: in a call, or always.

use std::time::Duration;

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The call works.
    None,
    /// The call fails, and nothing was changed.
    Fails,
    /// The call is refused permanently.
    Refuses,
    /// The call fails, although all its changes were made.
    LosesReply,
    /// The call works after this time.
    Slow(Duration),
    /// The call panics.
    Panics,
}

/// A rule that a broken engine does not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    RunsWhatWasFirstLeasedFarAhead,
    KeepsTheRowOfWhatIsErased,
    WakesNobodyWhoForgetsAnAge,
}

pub(super) type Faults = dyn Fn(&'static str) -> Fault + Send + Sync;
