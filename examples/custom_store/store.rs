//! [`FileStore`]: a map, and a file from which its done records are read at the start.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate::{
    ClaimToken, Claimed, Clock, DedupeStore, EventKey, Monotonic, Ownership, ScopesInUse,
    StoreError, StoreErrorKind, StoreFuture,
};

/// A store for **one** process at a time. A running claim is in memory only: it is lost with its process, and the retry claims
/// again. A done record is in the file before its commit is answered.
#[derive(Debug)]
pub(crate) struct FileStore {
    clock: Arc<dyn Clock>,
    /// One lock over map and file: each call is one indivisible step.
    state: Arc<Mutex<State>>,
    scopes: ScopesInUse,
}

#[derive(Debug)]
struct State {
    records: HashMap<[u8; 16], Record>,
    file: File,
}

#[derive(Clone, Copy, Debug)]
enum Record {
    /// A lease is measured inside the process, so it uses the monotonic reading.
    Running { token: ClaimToken, until: Monotonic },
    /// Retention outlives the process, so it uses the wall clock.
    Done { token: ClaimToken, until: i64 },
}

impl FileStore {
    /// Reads the records whose retention has not ended, and writes the file again with these alone.
    pub(crate) fn open(path: impl AsRef<Path>, clock: impl Clock) -> io::Result<Self> {
        let (path, now) = (path.as_ref(), clock.now().as_i64());
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read?,
        };
        let anew = path.with_extension("new");
        let mut file = File::create(&anew)?;
        let mut records = HashMap::new();
        // A last line that a crash cut off was never answered as committed.
        for line in text.split_inclusive('\n') {
            if let Some((key, token, until)) = parse(line)
                && until > now
            {
                file.write_all(line.as_bytes())?;
                records.insert(key, Record::Done { token, until });
            }
        }
        file.sync_all()?;
        std::fs::rename(&anew, path)?;
        Ok(Self {
            clock: Arc::new(clock),
            state: Arc::new(Mutex::new(State { records, file })),
            scopes: ScopesInUse::default(),
        })
    }

    /// Runs one call. A disk may block its caller, so do not run this on a thread that answers requests.
    fn step<T: Send + 'static>(
        &self,
        key: &EventKey,
        step: impl FnOnce(&mut State, [u8; 16], Now) -> io::Result<T> + Send + 'static,
    ) -> StoreFuture<'_, T> {
        let (clock, state, key) = (self.clock.clone(), self.state.clone(), *key.as_bytes());
        let locked = move || {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            step(&mut state, key, Now::of(&*clock))
        };
        StoreFuture::boxed(async move {
            let done = tokio::task::spawn_blocking(locked).await;
            done.unwrap_or_else(|error| Err(io::Error::other(error)))
                .map_err(|error| StoreError::new(StoreErrorKind::Unavailable).caused_by(error))
        })
    }
}

/// The clock's readings, taken under the lock.
#[derive(Clone, Copy)]
struct Now {
    monotonic: Monotonic,
    wall: i64,
}

impl Now {
    fn of(clock: &dyn Clock) -> Self {
        Self {
            monotonic: clock.monotonic(),
            wall: clock.now().as_i64(),
        }
    }
}

impl State {
    /// Returns the record, if neither its lease nor its retention has ended.
    fn live(&self, key: [u8; 16], now: Now) -> Option<Record> {
        self.records
            .get(&key)
            .copied()
            .filter(|record| match record {
                Record::Running { until, .. } => *until > now.monotonic,
                Record::Done { until, .. } => *until > now.wall,
            })
    }

    fn is_held(&self, key: [u8; 16], by: ClaimToken, now: Now) -> bool {
        matches!(self.live(key, now), Some(Record::Running { token, .. }) if token == by)
    }
}

impl DedupeStore for FileStore {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        self.step(key, move |state, key, now| {
            Ok(match state.live(key, now) {
                Some(Record::Done { token: by, .. }) => Claimed::Done { by },
                Some(Record::Running { token: by, until }) if by != token => Claimed::Running {
                    retry_after: until.saturating_since(now.monotonic),
                },
                _ => {
                    let until = now.monotonic.saturating_add(lease);
                    state.records.insert(key, Record::Running { token, until });
                    Claimed::Fresh
                }
            })
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.step(key, move |state, key, now| {
            if !state.is_held(key, token, now) {
                return Ok(Ownership::Lost);
            }
            let until = now.monotonic.saturating_add(lease);
            state.records.insert(key, Record::Running { token, until });
            Ok(Ownership::Held)
        })
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.step(key, move |state, key, now| {
            match state.live(key, now) {
                // The call is repeated after a lost reply, and gets the same answer.
                Some(Record::Done { token: by, .. }) if by == token => return Ok(Ownership::Held),
                Some(Record::Running { token: by, .. }) if by == token => {}
                _ => return Ok(Ownership::Lost),
            }
            let seconds = i64::try_from(retain.as_secs()).unwrap_or(i64::MAX);
            let until = now.wall.saturating_add(seconds);
            state.file.write_all(line(key, token, until).as_bytes())?;
            state.file.sync_data()?;
            state.records.insert(key, Record::Done { token, until });
            Ok(Ownership::Held)
        })
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.step(key, move |state, key, now| {
            if !state.is_held(key, token, now) {
                return Ok(Ownership::Lost);
            }
            state.records.remove(&key);
            Ok(Ownership::Held)
        })
    }

    fn scopes_in_use(&self) -> Option<&ScopesInUse> {
        Some(&self.scopes)
    }
}

fn line(key: [u8; 16], token: ClaimToken, until: i64) -> String {
    let hex = |bytes: [u8; 16]| format!("{:032x}", u128::from_be_bytes(bytes));
    format!("{} {} {until}\n", hex(key), hex(*token.as_bytes()))
}

fn parse(line: &str) -> Option<([u8; 16], ClaimToken, i64)> {
    let mut words = line.strip_suffix('\n')?.split(' ');
    let mut bytes = || Some(u128::from_str_radix(words.next()?, 16).ok()?.to_be_bytes());
    let (key, token) = (bytes()?, ClaimToken::from_bytes(bytes()?));
    Some((key, token, words.next()?.parse().ok()?))
}
