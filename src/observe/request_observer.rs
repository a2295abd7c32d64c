//! The interface of the observers that a program sets.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;

use super::reports::Answer;
use crate::clock::{Clock, UnixSeconds};
use crate::dedupe::Attempt;

/// Is told of each request that reaches a receiver: set it by
/// [`ReceiverBuilder::observer`](crate::ReceiverBuilder::observer).
///
/// The `Recorder` of the package `hookgate-record` is one: it writes a log of all deliveries. Where
/// a report of the answer is enough, use [`on_answer`](crate::ReceiverBuilder::on_answer).
///
/// Each method runs on the thread that answers, after the hook of the same step, and must not
/// block. A panic in it is caught and changes nothing.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use hookgate::layer::{ObservedRequest, RequestObserver};
/// use hookgate::{
///     Delivery, MemoryStore, Receiver, Secret, clock::Clock, dedupe::Attempt, layer::Answer,
/// };
/// use http::request::Parts;
/// use http::{Request, StatusCode};
/// use http_body_util::Full;
///
/// /// Counts the bytes of the bodies that come to one path, with the status of each answer.
/// #[derive(Default)]
/// struct Sizes(Arc<Mutex<Vec<(usize, u16)>>>);
///
/// struct Size {
///     bytes: usize,
///     all: Arc<Mutex<Vec<(usize, u16)>>>,
/// }
///
/// impl RequestObserver for Sizes {
///     fn begin(&self, head: &Parts, _: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
///         let all = Arc::clone(&self.0);
///         (head.uri.path() == "/webhooks").then(|| Box::new(Size { bytes: 0, all }) as _)
///     }
/// }
///
/// impl ObservedRequest for Size {
///     fn body_read(&mut self, body: &bytes::Bytes) {
///         self.bytes = body.len();
///     }
///
///     fn answered(self: Box<Self>, answer: &Answer, _: Option<Attempt>) {
///         self.all.lock().expect("no panic within").push((self.bytes, answer.status));
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let sizes = Sizes::default();
/// let all = Arc::clone(&sizes.0);
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .observer(sizes)
///     .build()?;
/// for path in ["/webhooks", "/elsewhere"] {
///     let request = Request::post(path).body(Full::<bytes::Bytes>::from("forged"))?;
///     receiver.handle(request, async |_: Delivery| StatusCode::NO_CONTENT).await;
/// }
/// // Without a signature the head was refused, and the body was not read. The other path was not observed.
/// assert_eq!(*all.lock().expect("no panic within"), [(0, 401)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Security
/// An observer gets the headers and bodies of **every client** that reaches the address, before
/// anything about them is proved and whether or not it ever is. Never act on them: only an
/// [`Answer`] says which delivery is authentic. Bodies hold names and e-mail addresses, headers may
/// hold credentials of a proxy, and a sender chooses the length of what it sends: bound what you
/// keep.
pub trait RequestObserver: Send + Sync + 'static {
    /// A request has arrived: this is its head. Returns the value that is told the further steps of
    /// this request, or `None`: then nothing more is told of it, and nothing is copied for it.
    /// `clock` is the receiver's.
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>>;
}

/// A shared observer is an observer.
impl<O: RequestObserver + ?Sized> RequestObserver for Arc<O> {
    fn begin(&self, head: &Parts, clock: &dyn Clock) -> Option<Box<dyn ObservedRequest>> {
        (**self).begin(head, clock)
    }
}

/// One request, as a [`RequestObserver`] follows it: is told each step in the order of these
/// methods, and only the steps that are taken. Each method does nothing by default.
///
/// The last step is [`answered`](Self::answered) or [`hung_up`](Self::hung_up). There is one
/// exception: where two layers of one receiver are around one service, the request is begun in
/// both. The inner one passes it on, and its value is dropped without a last step.
///
/// # Security
/// See [`RequestObserver`]: nothing here is proved before the [`Answer`].
pub trait ObservedRequest: Send + 'static {
    /// The age of the delivery is compared with this time, which was read from the receiver's
    /// clock.
    fn age_checked(&mut self, now: UnixSeconds) {
        let _ = now;
    }

    /// The body was read to its end. Its signature is compared next. A clone of it costs no copy,
    /// but keeps the buffer in which it was read, which may be larger.
    fn body_read(&mut self, body: &Bytes) {
        let _ = body;
    }

    /// The body was not read to its end, but only this number of bytes: it broke off, was too slow
    /// or was too long.
    fn body_broke_off(&mut self, bytes: usize) {
        let _ = bytes;
    }

    /// The answer is known, and is sent next. `attempt` is the probable attempt of the sender, if
    /// the delivery is authentic and its body says when the event was created.
    ///
    /// A run that outlives its request ends later: see
    /// [`on_settled`](crate::ReceiverBuilder::on_settled).
    fn answered(self: Box<Self>, answer: &Answer, attempt: Option<Attempt>) {
        let _ = (answer, attempt);
    }

    /// There is no answer: the sender hung up, or the server was stopped, this time after the
    /// request had arrived.
    fn hung_up(self: Box<Self>, after: Duration) {
        let _ = after;
    }
}
