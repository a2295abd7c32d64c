//! The running emulator, its settings and its handles.

use std::net::SocketAddr;
use std::sync::Arc;

use hookgate::clock::{Clock, SystemClock};
use hookgate_testing::Transport;
use serde_json::json;
use tokio::net::TcpListener;

use crate::deliver::{Reach, Route};
use crate::http::{Access, Server};
use crate::hub::{Hub, Shared, Start, StartError};
use crate::seed::Seed;
use crate::time::{EmulatorClock, SigningTime};

/// An emulator that listens on a port of this machine. Dropping it ends all its work.
#[derive(Debug)]
pub struct Emulator {
    pub(crate) hub: Shared,
    address: SocketAddr,
    _server: Server,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.hub.deliveries.stop();
    }
}

/// The settings of an emulator, from [`Emulator::builder`].
#[derive(Debug)]
#[must_use]
pub struct EmulatorBuilder {
    start: Start,
    address: SocketAddr,
    clock: Arc<dyn Clock>,
    signatures: SigningTime,
    token: Option<String>,
    hosts: Vec<String>,
    reach: Reach,
    route: Option<Route>,
}

/// The ids of every emulator begin alike, so that a test can name them.
const ID_SEED: u64 = 1;

impl Emulator {
    /// Starts an emulator on a free port of the loopback address. It signs deliveries at its own time: give its
    /// [`clock`](Self::clock) to the receiver.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(seed: Seed) -> Result<Self, StartError> {
        Self::builder(seed).start().await
    }

    /// Returns a builder, to change settings before the start.
    pub fn builder(seed: Seed) -> EmulatorBuilder {
        EmulatorBuilder {
            start: Start {
                seed,
                ids: ID_SEED,
                switches: Vec::new(),
                faults: Vec::new(),
            },
            address: ([127, 0, 0, 1], 0).into(),
            clock: Arc::new(SystemClock),
            signatures: SigningTime::Emulated,
            token: None,
            hosts: Vec::new(),
            reach: Reach::Loopback,
            route: None,
        }
    }

    /// Returns the address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address of the page, such as `http://127.0.0.1:40000`, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address of the API, the specification's `{base_url}`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/api/v1", self.address)
    }

    /// Returns the emulator's clock.
    #[must_use]
    pub fn clock(&self) -> EmulatorClock {
        self.hub.clock.clone()
    }
}

/// An empty token is the same as none.
fn is_token(text: &str) -> bool {
    let is_sendable = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    !text.is_empty() && text.chars().all(is_sendable)
}

impl EmulatorBuilder {
    /// Listens on this address, in place of a free port of the loopback address.
    ///
    /// # Security
    /// The control API and the page hold secrets and change everything. On an address that other machines can reach, `start` also
    /// requires a [`token`](Self::token).
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Takes the time from this clock, in place of the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Signs deliveries at the clock's own time, without the time that was advanced: for a receiver that reads a real
    /// clock.
    pub fn real_signatures(mut self) -> Self {
        self.signatures = SigningTime::Real;
        self
    }

    /// Makes ids from this seed.
    pub fn id_seed(mut self, seed: u64) -> Self {
        self.start.ids = seed;
        self
    }

    /// Sets a switch, in place of the seed's value. `start` refuses names and values that do not exist.
    pub fn switch(mut self, name: &str, value: &str) -> Self {
        self.start.switches.push((name.to_owned(), value.into()));
        self
    }

    /// Switches a fault on from the start, for the first `count` deliveries or requests. `start` refuses names that do not exist.
    pub fn fault_first(mut self, fault: &str, count: u64) -> Self {
        let fault = json!({ "fault": fault, "first": count });
        self.start.faults.push(fault);
        self
    }

    /// Switches a fault on from the start, for the deliveries or requests that the seed selects.
    pub fn fault_seeded(mut self, fault: &str, seed: u64) -> Self {
        let fault = json!({ "fault": fault, "seed": seed });
        self.start.faults.push(fault);
        self
    }

    /// Requires this token for the control API and the page. A cookie carries it, so it may have letters, digits and `-_.~`; `start`
    /// refuses other tokens.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Also answers requests with this name in `Host`.
    pub fn allow_host(mut self, name: &str) -> Self {
        self.hosts.push(name.to_owned());
        self
    }

    /// Delivers to every host, over plain HTTP/1.1. Without this, deliveries go only to loopback addresses.
    ///
    /// # Security
    /// A client that can change a subscription can then send requests to every host that this machine can reach.
    pub fn deliver_anywhere(mut self) -> Self {
        self.reach = Reach::Anywhere;
        self
    }

    /// Delivers over this transport, in place of HTTP/1.1 to loopback addresses: to an app in this process, or with TLS. The
    /// transport decides where deliveries may go.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.route = Some(Route::to(transport));
        self
    }

    /// Starts the emulator. It needs a tokio runtime with time and network.
    ///
    /// # Errors
    /// It can't listen on the address; a switch or a fault does not exist; a cookie can't carry the token; other machines can reach the
    /// address and there is no token; or the seed's deliveries would go to another host.
    pub async fn start(self) -> Result<Emulator, StartError> {
        if self.token.as_deref().is_some_and(|token| !is_token(token)) {
            let message = "the token is expected to be of letters, digits and -_.~";
            return Err(StartError::Setting(message.to_owned()));
        }
        if self.token.is_none() && !self.address.ip().is_loopback() {
            let message = format!(
                "{} is reached from other machines: set a token",
                self.address
            );
            return Err(StartError::Setting(message));
        }
        let refused = |error| StartError::Address(self.address, error);
        let listener = TcpListener::bind(self.address).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let clock = EmulatorClock::new(self.clock, self.signatures);
        let hub = Hub::new(self.start, clock, self.reach, self.route)?;
        let access = Access {
            address,
            token: self.token,
            hosts: self.hosts,
        };
        let server = Server::start(listener, Arc::clone(&hub), access);
        Ok(Emulator {
            hub,
            address,
            _server: server,
        })
    }
}
