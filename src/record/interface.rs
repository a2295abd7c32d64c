//! The interface that receives the recorded deliveries.

use std::sync::Arc;

use super::entry::LoggedDelivery;

/// Receives the entries of [`ReceiverBuilder::record`](crate::ReceiverBuilder::record): a [`Recorder`](super::Recorder),
/// which writes a file, or any closure.
///
/// It is called on the thread that answers, after the answer's hooks and before the answer is sent, so it must not block. A
/// panic in it is caught and changes nothing.
///
/// ```
/// use std::sync::Mutex;
/// use hookgate::record::{LoggedDelivery, Record};
/// use hookgate::{MemoryStore, Receiver, Secret};
///
/// /// Keeps what was refused, for a test to look at.
/// #[derive(Default)]
/// struct Refused(Mutex<Vec<LoggedDelivery>>);
///
/// impl Record for Refused {
///     fn record(&self, delivery: LoggedDelivery) {
///         if delivery.answer.as_ref().is_some_and(|answer| answer.status >= 400) {
///             self.0.lock().expect("no panic within").push(delivery);
///         }
///     }
/// }
///
/// let refused = std::sync::Arc::new(Refused::default());
/// let receiver = Receiver::builder()
///     .secret(Secret::new("whsec_made_up_for_this_example")?)
///     .store(MemoryStore::default())
///     .record(std::sync::Arc::clone(&refused))
///     .build()?;
/// # let _ = receiver;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Record: Send + Sync + 'static {
    /// Receives a delivery that was answered, or whose sender has hung up.
    fn record(&self, delivery: LoggedDelivery);
}

impl<F: Fn(LoggedDelivery) + Send + Sync + 'static> Record for F {
    fn record(&self, delivery: LoggedDelivery) {
        self(delivery);
    }
}

/// A shared recorder is a recorder.
impl<R: Record + ?Sized> Record for Arc<R> {
    fn record(&self, delivery: LoggedDelivery) {
        (**self).record(delivery);
    }
}
