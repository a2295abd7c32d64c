//! A thread that owns connections.

use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};

use hookgate::dedupe::{StoreError, StoreErrorKind};

use crate::fault::store_error;

/// Starts a thread with the values that it owns, and waits until it is ready.
pub(crate) fn start<O: Send + 'static>(
    name: &str,
    owned: O,
    work: impl FnOnce(&O, &dyn Fn()) -> rusqlite::Result<()> + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    let (ready, is_ready) = sync_channel(1);
    let not_started = |error| {
        let advice = "the system starts no more threads: look for the program that has so many";
        StoreError::saying(StoreErrorKind::Unavailable, advice).caused_by(error)
    };
    let thread = thread::Builder::new().name(name.to_owned());
    let started = thread.spawn(move || {
        // Only the first report is read.
        let say = |word| drop(ready.try_send(word));
        if let Err(error) = work(&owned, &|| say(Ok(()))) {
            say(Err(error));
        }
    });
    let thread = started.map_err(not_started)?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(store_error(error)),
        Err(_) => Err(not_started(std::io::Error::other("a thread has ended"))),
    }
}
