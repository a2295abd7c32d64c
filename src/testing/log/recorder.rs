//! A delivery log in a file, written by a thread of its own.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::append::{LogFile, Rotation};
use super::entry::LoggedDelivery;
use super::line::Mark;
use super::queue::{Batch, Bounds, Queue, Waiting};
use super::record::Record;
use super::redact::Redaction;
use super::rotated::MOST;
use crate::caught::caught;
use crate::error::LogError;

/// What was not written is tried again after this time.
const RETRY: Duration = Duration::from_millis(500);
/// The longest that dropping the last recorder waits for its file.
const CLOSING: Duration = Duration::from_secs(5);
/// A body up to this size is copied out of the buffer it was read into, which is larger and would be kept along with it.
const COPIED: usize = 16 << 10;

/// Writes deliveries to a file, one a line. Clones write to the same one.
///
/// It never slows or fails a delivery: what is recorded goes into a queue, and a thread of its own writes it. Where the queue is full,
/// since the disk is slow or full, the delivery is **dropped**: counted in [`dropped`](Self::dropped), and said in the log
/// as soon as it can be written again, where readers find it ([`DeliveryLog::dropped`](super::DeliveryLog::dropped)).
///
/// ```
/// use std::time::Duration;
/// use hookgate::testing::log::{DeliveryLog, Recorder, Redaction};
/// use hookgate::testing::Signer;
/// use hookgate::{Delivery, LocalStore, Receiver, Secret};
/// use http::StatusCode;
/// use http_body_util::Full;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// # let path = std::env::temp_dir().join(format!("hookgate-doctest-{}.jsonl", std::process::id()));
/// let recorder = Recorder::to(&path)
///     .max_bytes(64 << 20)
///     .keep(4)
///     .redact(Redaction::people())
///     .on_error(|error| eprintln!("{error}"))
///     .open()?;
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// let receiver = Receiver::builder()
///     .secret(secret.clone())
///     .store(LocalStore::default())
///     .record(recorder.clone())
///     .build()?;
///
/// let request = Signer::new(secret).request("/", r#"{"id":"evt_1","type":"page.created"}"#);
/// receiver.handle(request.map(Full::new), async |_: Delivery| StatusCode::NO_CONTENT).await;
///
/// assert!(recorder.flush(Duration::from_secs(5)));
/// assert_eq!((recorder.written(), recorder.dropped()), (1, 0));
/// let log = DeliveryLog::open(&path)?;
/// assert_eq!(log.deliveries()[0].answer.as_ref().unwrap().outcome, "handled");
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # When the disk fails
/// A file that can't be written, on a full disk or in a directory that was removed, is tried again twice a second, and opened anew if it is
/// gone. Meanwhile deliveries wait in the queue, and beyond it they are dropped. [`on_error`](RecorderBuilder::on_error) is told when it
/// begins, [`last_error`](Self::last_error) says it until a line is written again, and [`failures`](Self::failures) counts.
///
/// # When the program ends
/// Dropping the last clone waits for the rest to be written, for 5 s at most. A receiver holds a clone, so one that lives as long as the
/// program keeps it from being dropped: call [`flush`](Self::flush) before such a program ends. What a program that is killed leaves
/// behind is whole but for its last line, which readers pass over, and which the next recorder closes off. Nothing is forced from the
/// system's cache to the disk: a power failure can cost the last seconds.
///
/// # Files
/// On Unix the file's mode is 0600 from its creation on. One that is there already, and those moved aside, are closed to others when it is
/// opened. Where that is not allowed, since somebody else owns the file, it is not opened.
///
/// A file that would grow beyond [`max_bytes`](RecorderBuilder::max_bytes) is moved to `path.1`, that to `path.2`, and so on. A
/// delivery is never split between two, and one that is larger than a file may be gets a file of its own. A tool that moves files
/// away does no harm (on Unix: elsewhere a file can't be told from another of its name). Where the file can't be moved it grows on, and
/// `on_error` is told.
///
/// Two processes may write to one file of a local disk: their lines don't mix. Each rotates when it finds the file full; what the other
/// writes in that moment may end up in `path.1`, behind its turn.
#[derive(Clone)]
pub struct Recorder(Arc<Handle>);

/// Closes the file when the last clone goes.
struct Handle(Arc<Shared>);

struct Shared {
    queue: Queue,
    failing: Mutex<Failing>,
}

#[derive(Default)]
struct Failing {
    failures: u64,
    last: Option<Arc<LogError>>,
}

/// The settings of a [`Recorder`].
#[must_use]
pub struct RecorderBuilder {
    path: PathBuf,
    rotation: Rotation,
    bounds: Bounds,
    redaction: Redaction,
    on_error: Option<OnError>,
}

type OnError = Box<dyn Fn(&LogError) + Send>;

impl Recorder {
    /// Begins a recorder to this file. What is in it already stays.
    pub fn to(path: impl AsRef<Path>) -> RecorderBuilder {
        RecorderBuilder {
            path: path.as_ref().to_owned(),
            rotation: Rotation {
                max_bytes: 64 << 20,
                keep: 3,
            },
            bounds: Bounds {
                entries: 1_024,
                bytes: 16 << 20,
            },
            redaction: Redaction::new(),
            on_error: None,
        }
    }

    /// Waits until everything that was recorded before is written, or dropped. Says whether it is, which after `patience` it may not
    /// be. Blocks its thread.
    #[must_use = "it says whether everything is written"]
    pub fn flush(&self, patience: Duration) -> bool {
        self.0.0.queue.flush(patience)
    }

    /// How many deliveries were written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.0.0.queue.written()
    }

    /// How many deliveries were dropped: for want of room in the queue, or with a program that ended before its disk was well.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.0.0.queue.dropped()
    }

    /// How often the file could not be written.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.0.0.failing().failures
    }

    /// Why the file can't be written at this time; `None` once it could be.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<LogError>> {
        self.0.0.failing().last.clone()
    }
}

impl Record for Recorder {
    fn record(&self, mut delivery: LoggedDelivery) {
        if let Some(body) = delivery.body.as_mut().filter(|body| body.len() <= COPIED) {
            *body = Bytes::copy_from_slice(body);
        }
        self.0.0.queue.push(delivery);
    }
}

impl RecorderBuilder {
    /// The size up to which a file grows. Default: 64 MiB.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.rotation.max_bytes = bytes;
        self
    }

    /// How many files that were moved aside are kept. Default: 3, at most 999. With 0 a full file is removed. Those of a
    /// higher number, as after a change of this setting, are left alone.
    pub fn keep(mut self, files: u32) -> Self {
        self.rotation.keep = u64::from(files).min(MOST);
        self
    }

    /// The most that waits to be written: deliveries, and bytes of memory that they take. Default: 1,024 and 16 MiB. Beyond it they are
    /// dropped, as is one that takes more than that alone.
    pub fn queue(mut self, deliveries: usize, bytes: usize) -> Self {
        self.bounds = Bounds {
            entries: deliveries,
            bytes,
        };
        self
    }

    /// What is taken out of each delivery. Default: nothing but the headers that carry credentials.
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Calls `hook` when the file can't be written any more, once until it can be again. On the thread that writes; a panic in it
    /// harms nothing.
    pub fn on_error(mut self, hook: impl Fn(&LogError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(hook));
        self
    }

    /// Opens the file, which is made if it is not there; its directory is not.
    ///
    /// # Errors
    /// `Unwritable` where it can't be opened or closed to others, or the system has no thread left.
    pub fn open(self) -> Result<Recorder, LogError> {
        let file = LogFile::open(self.path, self.rotation).map_err(LogError::unwritable)?;
        let shared = Arc::new(Shared {
            queue: Queue::new(self.bounds),
            failing: Mutex::default(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            file,
            redaction: self.redaction,
            on_error: self.on_error,
        };
        std::thread::Builder::new()
            .name("hookgate-log".into())
            .spawn(move || writer.run())
            .map_err(LogError::unwritable)?;
        Ok(Recorder(Arc::new(Handle(shared))))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.close(CLOSING);
    }
}

impl Shared {
    fn failing(&self) -> std::sync::MutexGuard<'_, Failing> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What runs on the thread.
struct Writer {
    shared: Arc<Shared>,
    file: LogFile,
    redaction: Redaction,
    on_error: Option<OnError>,
}

impl Writer {
    fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let _ = caught(|| while self.write_batch() {});
        shared.queue.end();
    }

    /// Writes what waits. Says whether there may be more.
    fn write_batch(&mut self) -> bool {
        let Some(Batch { waiting, unsaid }) = self.shared.queue.take() else {
            return false;
        };
        self.file.look();
        for Waiting { delivery, bytes } in waiting {
            let line = caught(|| delivery.redacted(&self.redaction).to_line() + "\n");
            let written = line.is_ok_and(|line| self.write(line.as_bytes()));
            self.shared.queue.settle(bytes, written);
        }
        if unsaid > 0 {
            let line = Mark::Dropped(unsaid).to_line() + "\n";
            if !self.write(line.as_bytes()) {
                return false; // and what was dropped is said nowhere
            }
            self.shared.queue.said(unsaid);
        }
        true
    }

    /// Writes a line, however long it takes, unless the recorder is closing: then it tries once.
    fn write(&mut self, line: &[u8]) -> bool {
        loop {
            match self.file.append(line) {
                Ok(()) => {
                    match self.file.unmoved() {
                        Some(error) => self.failed(error),
                        None => self.shared.failing().last = None,
                    }
                    return true;
                }
                Err(error) => self.failed(error),
            }
            if self.shared.queue.pause(RETRY) {
                return false;
            }
            self.file.look();
        }
    }

    fn failed(&self, error: io::Error) {
        let error = Arc::new(LogError::unwritable(error));
        let mut failing = self.shared.failing();
        failing.failures += 1;
        let begins = failing.last.replace(Arc::clone(&error)).is_none();
        drop(failing);
        if let Some(hook) = self.on_error.as_ref().filter(|_| begins) {
            let _ = caught(|| hook(&error));
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("written", &self.written())
            .field("dropped", &self.dropped())
            .field("failures", &self.failures())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RecorderBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecorderBuilder")
            .field("path", &self.path)
            .field("rotation", &self.rotation)
            .field("bounds", &self.bounds)
            .field("redaction", &self.redaction)
            .finish_non_exhaustive()
    }
}
