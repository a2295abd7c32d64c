//! A delivery log in a file, written by a thread of its own.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::Clock;
use hookgate::internal::catch_panic;
use hookgate::layer::{ObservedRequest, RequestObserver};
use http::request::Parts;

use crate::append::{LogFile, RecordError, Rotation};
use crate::entry::LoggedDelivery;
use crate::observer::Recording;
use crate::queue::{Amount, Queue, weight};
use crate::redaction::Redaction;
use crate::rotated::MAX_FILES;

/// The pause before a failed write is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// The longest time that dropping the last recorder waits for its file.
const CLOSING: Duration = Duration::from_secs(5);
/// A body up to this size is copied out of its read buffer, which is larger and would be kept along
/// with it.
const COPIED: usize = 16 << 10;

/// Writes deliveries to a file, one line each. Clones write to the same file.
///
/// It never slows or fails a delivery: entries go into a queue, and a separate thread writes them.
/// Where the queue is full, because the disk is slow or full, the delivery is **dropped**: it is
/// counted in [`dropped`](Self::dropped). As soon as the file can be written again, a note in the
/// log has the number, for readers.
///
/// ```
/// use std::time::Duration;
/// use hookgate_record::{Recorder, Redaction};
/// use hookgate::{
///     Delivery, MemoryStore, Receiver, Secret,
///     clock::{Clock, SystemClock},
///     verify::{Signature, Timestamp},
/// };
/// use http::{Request, StatusCode};
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
///     .store(MemoryStore::default())
///     .observer(recorder.clone())
///     .build()?;
///
/// let body = r#"{"id":"evt_1","type":"page.created"}"#;
/// # let now = Timestamp::at(SystemClock.now())?;
/// # let signature = Signature::sign(&secret, &now, body.as_bytes()).to_header_value();
/// # let request = Request::post("/").header("x-service-timestamp", now.as_str());
/// # let request = request.header("x-service-signature", signature).body(Full::<bytes::Bytes>::from(body))?;
/// receiver.handle(request, async |_: Delivery| StatusCode::NO_CONTENT).await;
///
/// assert!(recorder.flush(Duration::from_secs(5)));
/// assert_eq!((recorder.written(), recorder.dropped()), (1, 0));
/// assert!(std::fs::read_to_string(&path)?.contains(r#""outcome":"handled""#));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [The front page](crate#the-file) says what happens when the disk fails and when the program
/// ends: call [`flush`](Self::flush) before the end of a program whose receiver lives as long as it
/// does.
#[derive(Clone)]
pub struct Recorder {
    handle: Arc<Handle>,
}

/// Closes the file when the last clone is dropped. The queue is shared with the thread that writes.
struct Handle {
    queue: Arc<Queue>,
}

/// The settings of a [`Recorder`].
#[must_use]
pub struct RecorderBuilder {
    path: PathBuf,
    rotation: Rotation,
    queue: Amount,
    redaction: Redaction,
    on_error: Option<OnError>,
}

type OnError = Box<dyn Fn(&RecordError) + Send>;

impl Recorder {
    /// Begins a recorder for this file. Its existing content stays.
    pub fn to(path: impl AsRef<Path>) -> RecorderBuilder {
        RecorderBuilder {
            path: path.as_ref().to_owned(),
            rotation: Rotation {
                max_bytes: 64 << 20,
                keep: 3,
            },
            queue: Amount {
                entries: 1_024,
                bytes: 16 << 20,
            },
            redaction: Redaction::new(),
            on_error: None,
        }
    }

    /// Adds a delivery to the queue, or drops it where the queue is full. A receiver whose
    /// [observer](hookgate::ReceiverBuilder::observer) this is does it for each delivery.
    pub fn record(&self, mut delivery: LoggedDelivery) {
        if let Some(body) = delivery.body.as_mut().filter(|body| body.len() <= COPIED) {
            *body = Bytes::copy_from_slice(body);
        }
        self.handle.queue.push(delivery);
    }

    /// Waits until all earlier entries are written or dropped. Returns whether they are: after
    /// `timeout` the result may be `false`. Blocks its thread.
    #[must_use = "it says whether everything is written"]
    pub fn flush(&self, timeout: Duration) -> bool {
        self.handle.queue.flush(timeout)
    }

    /// The number of deliveries that were written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.handle.queue.lock().written
    }

    /// The number of deliveries that were dropped: because the queue was full, or because the
    /// program ended while the disk still failed.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.handle.queue.lock().dropped
    }

    /// The number of failed writes to the file.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.handle.queue.lock().failures
    }

    /// The error why the file can't be written now; `None` after the next successful write.
    #[must_use]
    pub fn last_error(&self) -> Option<Arc<RecordError>> {
        self.handle.queue.lock().last_error.clone()
    }
}

/// Records each delivery that is answered, and each whose sender hung up first.
impl RequestObserver for Recorder {
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        let recorder = self.clone();
        let keep = move |delivery| recorder.record(delivery);
        Some(Box::new(Recording::begin(head, clock, keep)))
    }
}

impl RecorderBuilder {
    /// Sets the size up to which a file grows. Default: 64 MiB.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.rotation.max_bytes = bytes;
        self
    }

    /// Sets the number of rotated files that are kept. Default: 3, at most 999. With 0 a full file
    /// is removed. Files with a higher number, for example after a change of this setting, are not
    /// touched.
    pub fn keep(mut self, files: u32) -> Self {
        self.rotation.keep = u64::from(files).min(MAX_FILES);
        self
    }

    /// Sets the maximum that waits to be written: deliveries, and the bytes of memory that they
    /// take. Default: 1,024 and 16 MiB. More deliveries are dropped, and so is a single delivery
    /// that takes more than that.
    pub fn queue(mut self, deliveries: usize, bytes: usize) -> Self {
        self.queue = Amount {
            entries: deliveries,
            bytes,
        };
        self
    }

    /// Sets the redaction of each delivery. Default: only the headers that carry credentials are
    /// redacted.
    ///
    /// A delivery with a removed value can be replayed, signed anew. Why its signature failed can
    /// no longer be found out: the signed bytes are gone.
    pub fn redact(mut self, redaction: Redaction) -> Self {
        self.redaction = redaction;
        self
    }

    /// Calls `hook` when the file can't be written any more: once, until the file can be written
    /// again. The hook runs on the thread that writes. A panic in it is caught and changes nothing.
    pub fn on_error(mut self, hook: impl Fn(&RecordError) + Send + 'static) -> Self {
        self.on_error = Some(Box::new(hook));
        self
    }

    /// Opens the file, and creates it if it does not exist. Its directory is not created.
    ///
    /// # Errors
    /// The file can't be opened, the access of other users can't be removed, or the system has no
    /// thread left.
    pub fn open(self) -> Result<Recorder, RecordError> {
        let path = self.path.clone();
        let unwritable = |source| RecordError {
            path: path.clone(),
            source,
        };
        let file = LogFile::open(self.path, self.rotation).map_err(unwritable)?;
        let queue = Arc::new(Queue::new(self.queue));
        let writer = Writer {
            queue: Arc::clone(&queue),
            file,
            redaction: self.redaction,
            on_error: self.on_error,
        };
        std::thread::Builder::new()
            .name("hookgate-log".into())
            .spawn(move || writer.run())
            .map_err(unwritable)?;
        let handle = Arc::new(Handle { queue });
        Ok(Recorder { handle })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.queue.close(CLOSING);
    }
}

/// The state of the writer's thread.
struct Writer {
    queue: Arc<Queue>,
    file: LogFile,
    redaction: Redaction,
    on_error: Option<OnError>,
}

impl Writer {
    fn run(mut self) {
        let queue = Arc::clone(&self.queue);
        let _ = catch_panic(|| while self.write_batch() {});
        queue.end();
    }

    /// Writes the entries that wait. Returns whether more may follow.
    fn write_batch(&mut self) -> bool {
        let Some((waiting, missing)) = self.queue.take() else {
            return false;
        };
        self.file.check_file();
        for delivery in waiting {
            let bytes = weight(&delivery);
            let line = catch_panic(|| delivery.redacted(&self.redaction).to_line() + "\n");
            let written = line.is_ok_and(|line| self.write(line.as_bytes()));
            self.queue.settle(bytes, written);
        }
        if missing > 0 {
            let line = format!("{{\"dropped\":{missing}}}\n");
            if !self.write(line.as_bytes()) {
                return false; // the dropped deliveries are then mentioned nowhere
            }
            self.queue.note_reported(missing);
        }
        true
    }

    /// Writes a line, with as many tries as it needs. When the recorder is closing, it tries once.
    fn write(&mut self, line: &[u8]) -> bool {
        loop {
            match self.file.append(line) {
                Ok(unrotated) => {
                    match unrotated {
                        Some(error) => self.failed(error),
                        None => {
                            let ended = self.queue.lock().last_error.take();
                            drop(ended); // once the lock is free
                        }
                    }
                    return true;
                }
                Err(error) => self.failed(error),
            }
            if self.queue.pause(RETRY) {
                return false;
            }
            self.file.check_file();
        }
    }

    fn failed(&self, source: io::Error) {
        let error = Arc::new(RecordError {
            path: self.file.path().to_owned(),
            source,
        });
        let mut state = self.queue.lock();
        state.failures += 1;
        let begins = state.last_error.replace(Arc::clone(&error)).is_none();
        drop(state);
        if let Some(hook) = self.on_error.as_ref().filter(|_| begins) {
            let _ = catch_panic(|| hook(&error));
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
            .field("queue", &self.queue)
            .field("redaction", &self.redaction)
            .finish_non_exhaustive()
    }
}
