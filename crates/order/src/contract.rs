//! The tests that every [`OrderStore`] passes.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::StoreError;
use tokio::task::JoinSet;

use super::known::Known;
use super::moment::Moment;
use super::store::{LastHandled, OrderStore};

/// The racers for one record.
const RACERS: u8 = 32;
const LONG: Duration = Duration::from_secs(3_600);
/// The retention of the record that is seen to end.
const SHORT: Duration = Duration::from_secs(5);
const SECOND: Duration = Duration::from_secs(1);

/// Checks a store against the contract of [`OrderStore`]. The store must be empty, and has some
/// records afterwards. `advance` lets time pass for the store: it moves a
/// [`ManualClock`](hookgate::clock::ManualClock), or sleeps, 6 s in all.
///
/// # Errors
/// A call of the store failed.
///
/// # Panics
/// The store breaks the contract, and the message says which rule; or there is no tokio runtime.
/// Use a multi-thread runtime: it shows the most races.
///
/// A store of your own, which keeps bytes as a database does:
///
/// ```
/// use std::collections::HashMap;
/// use std::sync::{Arc, Mutex};
/// use std::time::Duration;
/// use hookgate_order::{LastHandled, OrderStore, contract};
/// use hookgate::{
///     clock::{Clock, ManualClock, Monotonic, UnixSeconds},
///     dedupe::StoreFuture,
/// };
///
/// #[derive(Debug)]
/// struct Own {
///     clock: ManualClock,
///     /// Revision, end and bytes. An ended record stays, so that no revision is used again.
///     rows: Mutex<HashMap<[u8; 16], (u64, Monotonic, Vec<u8>)>>,
/// }
///
/// impl OrderStore for Own {
///     fn last<'a>(&'a self, row: &'a [u8; 16]) -> StoreFuture<'a, Option<(u64, LastHandled)>> {
///         let (now, rows) = (self.clock.monotonic(), self.rows.lock().unwrap());
///         let live = rows.get(row).filter(|(_, ends, _)| *ends > now);
///         let last = live.map(|(revision, _, bytes)| Ok((*revision, LastHandled::from_bytes(bytes)?)));
///         StoreFuture::ready(last.transpose())
///     }
///
///     fn swap<'a>(&'a self, row: &'a [u8; 16], revision: u64, last: LastHandled, retain: Duration) -> StoreFuture<'a, bool> {
///         let (now, mut rows) = (self.clock.monotonic(), self.rows.lock().unwrap());
///         let (written, ends) = rows.get(row).map_or((0, now), |(written, ends, _)| (*written, *ends));
///         let present = if ends > now { written } else { 0 };
///         if present == revision {
///             rows.insert(*row, (written + 1, now.saturating_add(retain), last.to_bytes()));
///         }
///         StoreFuture::ready(Ok(present == revision))
///     }
/// }
///
/// # tokio::runtime::Builder::new_multi_thread().build()?.block_on(async {
/// let clock = ManualClock::at(UnixSeconds::new(1_763_690_000));
/// let store = Own { clock: clock.clone(), rows: Mutex::default() };
/// contract::check(Arc::new(store), async |time| clock.advance(time)).await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn check<S: OrderStore>(
    store: Arc<S>,
    advance: impl AsyncFn(Duration),
) -> Result<(), StoreError> {
    each_field_is_kept(&*store).await?;
    one_racer_wins(&store).await?;
    records_end(&*store, advance).await
}

async fn each_field_is_kept(store: &impl OrderStore) -> Result<(), StoreError> {
    let (row, other) = (&[1; 16], &[0xff; 16]);
    assert!(store.last(row).await?.is_none(), "a new row has no record");
    let wrong = store.swap(row, 1, record(0), LONG).await?;
    assert!(!wrong, "a row without a record has revision 0");

    let mut present = 0;
    for last in records() {
        let written = store.swap(row, present, last.clone(), LONG).await?;
        assert!(written, "the present revision is written on");
        let (revision, read) = store
            .last(row)
            .await?
            .unwrap_or_else(|| panic!("no record"));
        assert_eq!(read, last, "a record is read as it was written");
        assert!(
            revision != present && revision != 0,
            "each write has a revision of its own, which is not 0"
        );
        for wrong in [0, present, revision + 1, u64::MAX] {
            let written = store.swap(row, wrong, record(9), LONG).await?;
            assert!(!written, "another revision is not written on");
        }
        let after = store.last(row).await?;
        assert_eq!(
            after,
            Some((revision, last)),
            "a write that was refused changes nothing"
        );
        present = revision;
    }
    assert!(
        store.last(other).await?.is_none(),
        "another row has a record of its own"
    );
    assert!(
        store.swap(other, 0, record(1), Duration::MAX).await?,
        "any retention is taken"
    );
    assert!(store.last(other).await?.is_some());
    Ok(())
}

/// Many writers use the same revision, first on a new row and then on a row with a record. Only one
/// of them may succeed.
async fn one_racer_wins<S: OrderStore>(store: &Arc<S>) -> Result<(), StoreError> {
    let row = [2; 16];
    let mut present = 0;
    for _ in 0..2 {
        let mut racers = JoinSet::new();
        for racer in 0..RACERS {
            let store = Arc::clone(store);
            racers.spawn(async move {
                let won = store.swap(&row, present, record(racer), LONG).await?;
                Ok::<_, StoreError>(won.then_some(racer))
            });
        }
        let mut winners = Vec::new();
        while let Some(racer) = racers.join_next().await {
            match racer {
                Ok(won) => winners.extend(won?),
                Err(panicked) => panic!("a call panicked: {panicked}"),
            }
        }
        assert_eq!(
            winners.len(),
            1,
            "of several writers on one revision, one wins"
        );
        let last = store.last(&row).await?;
        let (revision, last) = last.unwrap_or_else(|| panic!("no record"));
        assert_eq!(
            last,
            record(winners[0]),
            "and its record is the one that is read"
        );
        present = revision;
    }
    Ok(())
}

async fn records_end(
    store: &impl OrderStore,
    advance: impl AsyncFn(Duration),
) -> Result<(), StoreError> {
    let (row, renewed) = (&[3; 16], &[4; 16]);
    for row in [row, renewed] {
        assert!(store.swap(row, 0, record(3), SHORT).await?);
    }
    advance(SECOND).await;
    let first = store.last(row).await?.map_or(0, |(revision, _)| revision);
    assert_ne!(first, 0, "a record is kept for its retention");
    let present = store.last(renewed).await?;
    let present = present.map_or(0, |(revision, _)| revision);
    assert!(store.swap(renewed, present, record(4), LONG).await?);
    advance(SHORT).await;
    assert!(store.last(row).await?.is_none(), "and no longer");
    let kept = store.last(renewed).await?;
    assert!(kept.is_some(), "the retention of the last write counts");
    let late = store.swap(row, first, record(5), LONG).await?;
    assert!(!late, "a record that has ended does not count");
    assert!(store.swap(row, 0, record(6), LONG).await?);
    let again = store.last(row).await?.map_or(0, |(revision, _)| revision);
    assert!(
        again != 0 && again != first,
        "a revision is not used again after its record has ended"
    );
    Ok(())
}

/// A record that differs from those of other numbers.
pub(super) fn record(number: u8) -> LastHandled {
    LastHandled {
        at: moment("2026-11-21T09:30:00Z"),
        event: [number; 16],
        is_deleted: false,
        is_doubtful: false,
        known: Known::created(&[([number; 8], [1; 8])]),
    }
}

fn moment(text: &str) -> Moment {
    Moment::read(text).unwrap_or_else(|| panic!("no moment: {text}"))
}

fn records() -> Vec<LastHandled> {
    let many: Vec<_> = (0..256_u64)
        .map(|number| (number.to_be_bytes(), number.to_le_bytes()))
        .collect();
    vec![
        record(0),
        LastHandled {
            at: moment("2026-11-21T09:30:00.123456Z"),
            known: Known::created(&many),
            ..record(1)
        },
        LastHandled {
            at: moment("0001-01-01T00:00:00.5Z"),
            is_deleted: true,
            is_doubtful: true,
            known: Known::default(),
            ..record(0xff)
        },
        LastHandled {
            at: moment("9999-12-31T23:59:59Z"),
            ..record(2)
        },
    ]
}
