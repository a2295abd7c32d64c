//! The page of a program that receives deliveries: the emulator's list and detail, without the
//! emulator.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::net::TcpListener;

use crate::http::{Access, Server};
use crate::live::Live;

/// A selection of deliveries: each part that is set has to fit.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeliveryFilter<'a> {
    /// The `state` that it has.
    pub state: Option<&'a str>,
    /// A part of its `eventType`.
    pub event_type: Option<&'a str>,
    /// Words, each of which occurs in the text that is shown for the delivery.
    pub search: Option<&'a str>,
}

/// The deliveries that an [`Inspector`] shows.
///
/// A delivery is a JSON object of the form that `GET /_emulator/deliveries` answers: `number`,
/// `id`, `eventId`, `eventType`, `subscriptionId`, `state`, `nextAttemptAt` and `attempts`; and
/// `subject`, what the event is about, and `reason`, why it was not accepted. The page shows all
/// values as text. A later delivery has a greater number.
///
/// # Security
/// Each program on the machine can read the page: leave secrets and signatures out.
pub trait Inspected: Send + Sync + 'static {
    /// Returns the newest deliveries that fit the filter, `limit` at most, the newest first; and
    /// the numbers that stand above the list, as an object: `kept`, the number of those that were
    /// searched, `received`, `states`, the number of those that fit the filter but for its state,
    /// by their `state`, and `leftOut`, the number of those that are not shown.
    fn deliveries(&self, filter: &DeliveryFilter<'_>, limit: usize) -> (Vec<Value>, Value);

    /// Returns what the page says of the receiver, as an object: `url`, where deliveries are taken;
    /// `next`, a command that sends one; `forward`, where they are passed on to, or null; `most`,
    /// the number of deliveries that are kept.
    fn receiver(&self) -> Value;

    /// Returns the delivery with this id, or the newest one of the event with this id. Each attempt
    /// has its `request` and its `answer` too.
    fn delivery(&self, id: &str) -> Option<Value>;

    /// Returns the reason why the delivery with this id was refused. It may take seconds, and is
    /// called on a thread that may block.
    fn explain(&self, id: &str) -> Option<Value>;

    /// Sends the delivery with this id again. Returns an object: `told` is the result as a
    /// sentence, `id` is the id of the new delivery, or null. Returns `None` if there is no such
    /// delivery. It may take seconds, and is called on a thread that may block.
    ///
    /// # Errors
    /// It can't be delivered again, or it was not accepted.
    ///
    /// # Security
    /// Each program on the machine can ask for it. So a delivery that was refused must not be
    /// signed here.
    fn replay(&self, id: &str) -> Option<Result<Value, String>>;

    /// Signs this body and delivers it, with the other headers of the delivery with this id. Else
    /// as [`replay`](Self::replay).
    ///
    /// # Errors
    /// It can't be delivered, or it was not accepted.
    ///
    /// # Security
    /// The body is any text. Only who opened [`Inspector::signing_url`] can ask for it.
    fn send(&self, id: &str, body: Bytes) -> Option<Result<Value, String>>;
}

/// The inspector of `hookgate listen --page`: it shows the deliveries that a program has received.
/// Dropping it closes the page.
///
/// # Security
/// Whoever reaches it reads it. So it accepts only a listener on a loopback address, and refuses
/// requests with another name in `Host`. To have a changed body signed and delivered takes the
/// token in [`signing_url`](Self::signing_url).
pub struct Inspector {
    address: SocketAddr,
    live: Live,
    token: Arc<str>,
    _server: Server,
}

/// What the inspector's requests need.
pub(crate) struct Shown {
    pub(crate) inspected: Arc<dyn Inspected>,
    pub(crate) live: Live,
    pub(crate) token: Arc<str>,
}

impl Inspector {
    /// Serves the page on this listener. It needs a tokio runtime.
    ///
    /// # Errors
    /// The listener has no address, or an address that other machines can reach.
    pub fn start(listener: TcpListener, inspected: Arc<dyn Inspected>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            let message =
                format!("{address} is reached from other machines, and the page has no token");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let live = Live::new();
        let token: Arc<str> = random_token().into();
        let shown = Shown {
            inspected,
            live: live.clone(),
            token: Arc::clone(&token),
        };
        let access = Access {
            address,
            token: None,
            hosts: Vec::new(),
        };
        Ok(Self {
            address,
            live,
            token,
            _server: Server::start(listener, Arc::new(shown), access),
        })
    }

    /// Returns the address of the page, such as `http://127.0.0.1:40000`, without a slash at its
    /// end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address of the page with the token that allows it to send a changed body.
    ///
    /// # Security
    /// Show it to the user of this program alone.
    #[must_use]
    pub fn signing_url(&self) -> String {
        format!("{}/?token={}", self.url(), self.token)
    }

    /// Shows a new or changed delivery on all open pages.
    pub fn tell(&self, delivery: &Value) {
        self.live.tell("delivery", delivery);
    }

    /// Has all open pages read the numbers above the list again.
    pub fn tell_totals(&self) {
        self.live.tell("totals", &Value::Null);
    }
}

/// The hasher's keys come from the system's random numbers.
fn random_token() -> String {
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shown").finish_non_exhaustive()
    }
}
