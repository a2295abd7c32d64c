//! What a statement may expect of its session, and how it is run where it may expect nothing.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// Each of our statements is correct at this level. At a stricter one the server refuses those that run at the same time, and
/// repeating them costs most of the throughput.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED;";

/// The sessions of a database's connections.
pub(super) struct Session {
    /// Whether each transaction may have another session, of which other clients have the rest.
    pub(super) is_shared: bool,
    /// Begins a transaction, with the settings that a session of ours would have.
    begin: String,
    /// Whether a statement has met another one at a stricter level.
    is_strict: AtomicBool,
}

impl Session {
    pub(super) fn new(is_shared: bool, local_settings: &str) -> Self {
        Self {
            is_shared,
            begin: format!("{BEGIN}{local_settings}"),
            is_strict: AtomicBool::new(false),
        }
    }

    pub(super) fn begin(&self) -> &str {
        &self.begin
    }

    /// Returns whether a single statement needs a transaction of its own. Where the level is the usual one, it would cost two
    /// messages and change nothing.
    pub(super) fn needs_transaction(&self) -> bool {
        self.is_shared || self.is_strict.load(Ordering::Relaxed)
    }

    /// Notes that the default level is stricter than `READ COMMITTED`, where no statement fails in this way.
    pub(super) fn note_strict(&self) {
        self.is_strict.store(true, Ordering::Relaxed);
    }
}

/// Runs both futures to their ends. The first is always polled first: a connection answers in that order.
pub(crate) async fn at_once<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut one, mut other) = (None, None);
    poll_fn(|context| {
        if one.is_none()
            && let Poll::Ready(output) = first.as_mut().poll(context)
        {
            one = Some(output);
        }
        if other.is_none()
            && let Poll::Ready(output) = second.as_mut().poll(context)
        {
            other = Some(output);
        }
        match (one.take(), other.take()) {
            (Some(one), Some(other)) => Poll::Ready((one, other)),
            (unfinished, rest) => {
                (one, other) = (unfinished, rest);
                Poll::Pending
            }
        }
    })
    .await
}
