//! One event of a row at a time, within this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio::sync::{Mutex as Waiting, OwnedMutexGuard};
use tokio::time::timeout;

/// How long an event waits for others of its row: less than a receiver's budget of 4.5 s, in which
/// the sender gets its answer.
const WAIT: Duration = Duration::from_secs(4);
/// The most events of one row that wait: each of them holds a body and a permit of the receiver.
const MAX_WAITING: usize = 16;

/// The rows with an event that is handled or waits.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<[u8; 16], Arc<Waiting<()>>>>);

/// The permission to handle one event: no other event of the row is handled until this value is
/// dropped.
pub(super) struct Turn<'t> {
    turns: &'t Turns,
    row: [u8; 16],
    held: Option<OwnedMutexGuard<()>>,
}

impl Turns {
    /// Waits until no other event of the row is handled.
    pub(super) async fn enter(&self, row: [u8; 16]) -> Result<Turn<'_>, StoreError> {
        let refused = |why| StoreError::saying(StoreErrorKind::Conflict, why);
        let waiting = {
            let mut rows = self.rows();
            let waiting = rows.entry(row).or_default();
            // The map holds one reference, and the event that is handled another.
            if Arc::strong_count(waiting) >= MAX_WAITING + 2 {
                return Err(refused(
                    "16 other events of the row wait already: this one was not handled, and can be tried again",
                ));
            }
            Arc::clone(waiting)
        };
        // `turn` exists before the wait, so that its `drop` removes the unused row also if this
        // future is dropped during the wait.
        let mut turn = Turn {
            turns: self,
            row,
            held: None,
        };
        let held = timeout(WAIT, waiting.lock_owned()).await;
        turn.held = Some(held.map_err(|_| {
            refused("other events of the row took 4 s: this one was not handled, and can be tried again")
        })?);
        Ok(turn)
    }

    /// Every step leaves the rows consistent, so they stay usable after a panic elsewhere.
    fn rows(&self) -> MutexGuard<'_, HashMap<[u8; 16], Arc<Waiting<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut rows = self.turns.rows();
        let is_last = |waiting: &Arc<_>| Arc::strong_count(waiting) == 1;
        if rows.get(&self.row).is_some_and(is_last) {
            rows.remove(&self.row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // fault G8: two events of one row are handled side by side in one process, and the handler of the older one writes last
    #[tokio::test(start_paused = true)]
    async fn a_row_is_forgotten_once_no_event_of_it_is_handled_or_waits() {
        let turns = Arc::new(Turns::default());
        let rows = || turns.rows().len();
        let first = turns.enter([1; 16]).await.unwrap();
        drop(turns.enter([2; 16]).await.unwrap());
        assert_eq!(rows(), 1, "another row is free");
        let wait = || {
            let turns = Arc::clone(&turns);
            tokio::spawn(async move { turns.enter([1; 16]).await.map(drop) })
        };
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| wait()).collect();
        tokio::task::yield_now().await;
        let error = wait().await.unwrap().unwrap_err();
        assert!(error.to_string().starts_with("16 other events"), "{error}");
        waiting[0].abort();
        tokio::time::sleep(WAIT / 2).await;
        // The place of one that went away is free.
        let late = wait();
        tokio::time::sleep(WAIT / 2).await;
        for (number, waiting) in waiting.into_iter().enumerate().skip(1) {
            let error = waiting.await.unwrap().unwrap_err();
            assert!(
                error.to_string().starts_with("other events"),
                "{number} {error}"
            );
        }
        drop(first);
        late.await.unwrap().unwrap();
        assert_eq!(rows(), 0);
    }
}
