//! The settings of connections, and how a statement is run where each transaction may have another
//! session.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

/// The settings of every connection, unless the configuration's options set them: name and value.
/// Without them the server would continue statements whose caller no longer waits, and hold their
/// locks.
const SETTINGS: [(&str, &str); 3] = [
    ("lock_timeout", "800ms"),
    ("statement_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
];
/// Each statement here is correct at this level. At a stricter one, statements at the same time are
/// refused and repeated.
const ISOLATION: (&str, &str) = ("default_transaction_isolation", "read committed");
/// Begins a transaction at that level, whatever the default is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED;";

/// The sessions of a database's connections.
#[derive(Default)]
pub(super) struct Sessions {
    /// The statements that a session begins with.
    settings: String,
    /// Begins a transaction with these settings, in a session that was begun without them.
    begin_with_settings: String,
    /// Whether each transaction may have another session, and other clients have it next, so that
    /// no setting may stay there.
    is_shared: AtomicBool,
    /// Whether a statement was refused because its isolation level was stricter than
    /// `READ COMMITTED`.
    is_strict: AtomicBool,
}

impl Sessions {
    /// Those of connections that are made here, by a configuration with these options.
    pub(super) fn with_settings(options: &str) -> Self {
        let local = settings("SET LOCAL", options, &SETTINGS);
        Self {
            settings: settings("SET", options, SETTINGS.iter().chain([&ISOLATION])),
            begin_with_settings: format!("{BEGIN}{local}"),
            ..Self::default()
        }
    }

    /// Those of the user's pool, whose settings stay as they are.
    pub(super) fn as_they_are() -> Self {
        Self {
            begin_with_settings: BEGIN.to_owned(),
            ..Self::default()
        }
    }

    /// Notes that other clients use the sessions too.
    pub(super) fn share(&self) {
        self.is_shared.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Returns the statements to run on a new connection, if there are any.
    pub(super) fn settings(&self) -> Option<&str> {
        (!self.is_shared() && !self.settings.is_empty()).then_some(&self.settings)
    }

    /// Returns the statements that begin a transaction.
    pub(super) fn begin(&self) -> &str {
        if self.is_shared() {
            &self.begin_with_settings
        } else {
            BEGIN
        }
    }

    /// Returns whether a single statement needs a transaction of its own. Where the level is the
    /// usual one, it would cost two messages and change nothing.
    pub(super) fn needs_transaction(&self) -> bool {
        self.is_shared() || self.is_strict.load(Ordering::Relaxed)
    }

    /// Notes that a statement failed in a way that `READ COMMITTED` excludes: the default level is
    /// stricter.
    pub(super) fn note_strict(&self) {
        self.is_strict.store(true, Ordering::Relaxed);
    }
}

fn settings<'a>(
    set: &str,
    options: &str,
    settings: impl IntoIterator<Item = &'a (&'a str, &'a str)>,
) -> String {
    let settings = settings.into_iter();
    settings
        .filter(|(name, _)| !is_set(options, name))
        .map(|(name, value)| format!("{set} {name} = '{value}';"))
        .collect()
}

/// Returns whether the options set this name. `-c lock_timeout=1s`, `-clock_timeout=1s` and
/// `--lock-timeout=1s` are the same setting; `deadlock_timeout` is another.
fn is_set(options: &str, name: &str) -> bool {
    let of_a_word = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    options.split(|letter| !of_a_word(letter)).any(|word| {
        let word = word.to_ascii_lowercase().replace('-', "_");
        let word = word.trim_start_matches('_');
        word == name || word.strip_prefix('c') == Some(name)
    })
}

/// Runs both futures to their ends. The first is always polled first: a connection answers in that
/// order.
pub(crate) async fn at_once<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let mut early = None;
    let one = poll_fn(|context| {
        let one = first.as_mut().poll(context);
        if early.is_none()
            && let Poll::Ready(other) = second.as_mut().poll(context)
        {
            early = Some(other);
        }
        one
    });
    let one = one.await;
    let other = match early {
        Some(other) => other,
        None => second.await,
    };
    (one, other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_options_set_stays() {
        for options in [
            "-c statement_timeout=2s",
            "-cstatement_timeout=2s",
            "-c geqo=off --statement-timeout=2s",
            "-c STATEMENT_TIMEOUT=2s -c deadlock_timeout=2s",
        ] {
            assert_eq!(
                settings("SET", options, &SETTINGS),
                "SET lock_timeout = '800ms';SET idle_in_transaction_session_timeout = '10s';",
                "{options}"
            );
        }
        for options in ["", "-c deadlock_timeout=2s"] {
            let local = settings("SET LOCAL", options, &SETTINGS);
            assert_eq!(local.matches("SET LOCAL ").count(), SETTINGS.len());
        }
    }
}
