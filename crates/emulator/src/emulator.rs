//! The running emulator, its settings and its handles.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hookgate::clock::{Clock, SystemClock, UnixSeconds};
use hookgate_testing::Transport;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::answer::ApiError;
use crate::changes;
use crate::changes::By;
use crate::deliver::{Reach, Route};
use crate::http::{Access, Server};
use crate::hub::{Hub, Shared, Start, StartError};
use crate::model::{RowData, State};
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
    /// Starts an emulator on a free port of the loopback address. It signs deliveries at its own
    /// time: give its [`clock`](Self::clock) to the receiver.
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

    /// Returns the address of the page, such as `http://127.0.0.1:40000`, without a slash at its
    /// end.
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
    /// The control API and the page hold secrets and change everything. On an address that other
    /// machines can reach, `start` also requires a [`token`](Self::token).
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self
    }

    /// Takes the time from this clock, in place of the system's.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Signs deliveries at the clock's own time, without the time that was advanced: for a receiver
    /// that reads a real clock.
    pub fn real_signatures(mut self) -> Self {
        self.signatures = SigningTime::Real;
        self
    }

    /// Makes ids from this seed.
    pub fn id_seed(mut self, seed: u64) -> Self {
        self.start.ids = seed;
        self
    }

    /// Sets a switch, in place of the seed's value. `start` refuses names and values that do not
    /// exist.
    pub fn switch(mut self, name: &str, value: &str) -> Self {
        self.start.switches.push((name.to_owned(), value.into()));
        self
    }

    /// Switches a fault on from the start, for the first `count` deliveries or requests. `start`
    /// refuses names that do not exist.
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

    /// Requires this token for the control API and the page. A cookie carries it, so it may have
    /// letters, digits and `-_.~`; `start` refuses other tokens.
    pub fn token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// Also answers requests with this name in `Host`.
    pub fn allow_host(mut self, name: &str) -> Self {
        self.hosts.push(name.to_owned());
        self
    }

    /// Delivers to every host, over plain HTTP/1.1. Without this, deliveries go only to loopback
    /// addresses.
    ///
    /// # Security
    /// A client that can change a subscription can then send requests to every host that this
    /// machine can reach.
    pub fn deliver_anywhere(mut self) -> Self {
        self.reach = Reach::Anywhere;
        self
    }

    /// Delivers over this transport, in place of HTTP/1.1 to loopback addresses: to an app in this
    /// process, or with TLS. The transport decides where deliveries may go.
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.route = Some(Route::to(transport));
        self
    }

    /// Starts the emulator. It needs a tokio runtime with time and network.
    ///
    /// # Errors
    /// It can't listen on the address; a switch or a fault does not exist; a cookie can't carry the
    /// token; other machines can reach the address and there is no token; or the seed's deliveries
    /// would go to another host.
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

/// The reason why a call of a handle was refused: the message that the API answers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        Self(format!(
            "{} {}: {}",
            error.status.as_u16(),
            error.code,
            error.message
        ))
    }
}

/// The rows of a data model, from [`Emulator::rows`]. Changes emit events, like changes that a
/// person makes on the service's pages.
#[derive(Clone, Copy, Debug)]
pub struct RowsHandle<'e> {
    emulator: &'e Emulator,
    model: &'e str,
}

impl Emulator {
    /// Returns the rows of a data model.
    #[must_use]
    pub fn rows<'e>(&'e self, model: &'e str) -> RowsHandle<'e> {
        RowsHandle {
            emulator: self,
            model,
        }
    }

    /// Advances the time, and makes every attempt that becomes due, in order of time. Returns the
    /// number of attempts.
    pub async fn advance(&self, by: Duration) -> u64 {
        self.hub.deliveries.advance(by).await
    }

    /// Returns the emulator's time.
    #[must_use]
    pub fn now(&self) -> UnixSeconds {
        self.hub.clock.now()
    }

    /// Waits until no attempt is under way. It does not wait for later retries.
    pub async fn settled(&self) {
        self.hub.deliveries.settled().await;
    }

    /// Returns the log of deliveries, the newest first, in the form of `GET /_emulator/deliveries`.
    #[must_use]
    pub fn deliveries(&self) -> Vec<Value> {
        let records = self.hub.deliveries.records(None);
        records.iter().map(|record| json!(record)).collect()
    }

    /// Switches a fault on for the first `count` deliveries or requests.
    ///
    /// # Errors
    /// There is no fault of this name.
    pub fn fault_first(&self, fault: &str, count: u64) -> Result<(), Refused> {
        self.add_fault(&json!({ "fault": fault, "first": count }))
    }

    /// Switches a fault on for the deliveries or requests that the seed selects.
    ///
    /// # Errors
    /// There is no fault of this name.
    pub fn fault_seeded(&self, fault: &str, seed: u64) -> Result<(), Refused> {
        self.add_fault(&json!({ "fault": fault, "seed": seed }))
    }

    /// Switches every fault on: the first for the deliveries or requests that this seed draws, each
    /// other one for those of the next seed.
    pub fn every_fault_seeded(&self, seed: u64) {
        self.hub.faults.add_every(seed);
    }

    fn add_fault(&self, fault: &Value) -> Result<(), Refused> {
        self.hub.faults.add(fault).map(drop).map_err(Refused)
    }

    /// Switches every fault off.
    pub fn clear_faults(&self) {
        self.hub.faults.clear();
    }

    /// Returns the faults that are switched on, with their hits, in the form of
    /// `GET /_emulator/faults`.
    #[must_use]
    pub fn faults(&self) -> Vec<Value> {
        self.hub.faults.list()
    }

    /// Makes a subscription to all events for this URL, with this secret, and returns its id.
    ///
    /// # Errors
    /// The URL or the secret is not valid, or the emulator may not deliver to that host.
    pub fn subscribe(&self, url: &str, secret: &str) -> Result<String, Refused> {
        let made = self
            .hub
            .deliveries
            .create(&json!({ "url": url, "secret": secret }));
        made.map(|made| made.id).map_err(Refused)
    }

    /// Asserts that an event of this type was delivered, and that its `data` has these fields with
    /// these values. Other fields are not compared.
    ///
    /// # Panics
    /// No such event was delivered. The message lists the deliveries of that type, each with its
    /// state and its differences.
    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn assert_delivered(&self, event_type: &str, data: Value) {
        let records = self.deliveries();
        let of_type = records
            .iter()
            .filter(|record| record["eventType"] == event_type);
        let mut told = String::new();
        for record in of_type {
            let mut found = Vec::new();
            differences("data", &data, &record["payload"]["data"], &mut found);
            if found.is_empty() && record["state"] == "delivered" {
                return;
            }
            let _ = writeln!(
                told,
                "  {} {}",
                text(&record["eventId"]),
                text(&record["state"])
            );
            for difference in found {
                let _ = writeln!(told, "    {difference}");
            }
            if let Some(attempt) = record["attempts"].as_array().and_then(|all| all.last()) {
                let _ = writeln!(
                    told,
                    "    last attempt: {} {}",
                    attempt["status"], attempt["error"]
                );
            }
        }
        if told.is_empty() {
            let _ = writeln!(told, "  none of that type, of {} deliveries", records.len());
        }
        panic!("no {event_type} with {data} was delivered:\n{told}");
    }

    /// Returns to the seed.
    pub fn reset(&self) {
        // What a start with this seed accepted is accepted again.
        let _ = self.hub.reset();
    }

    /// Returns the whole state as JSON, in the form of a [`Seed`](crate::Seed). It holds secrets.
    #[must_use]
    pub fn snapshot(&self) -> String {
        serde_json::to_string(&self.hub.snapshot()).unwrap_or_default()
    }

    /// Restores a snapshot, or another seed. If it is wrong, the state does not change.
    ///
    /// # Errors
    /// The text is not a snapshot.
    pub fn restore(&self, snapshot: &str) -> Result<(), Refused> {
        self.hub.restore(snapshot).map_err(Refused)
    }
}

impl RowsHandle<'_> {
    /// Creates a row from values by property id, and returns its id.
    ///
    /// # Errors
    /// As the API's 400 and 404.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn create(&self, values: Value) -> Result<String, Refused> {
        let values = row_data(&values)?;
        let row =
            self.change(|hub, state, by| changes::create(hub, state, self.model, &values, by))?;
        Ok(row.id.clone())
    }

    /// Sets values by property id.
    ///
    /// # Errors
    /// As the API's 400 and 404.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the caller writes a `json!` here"
    )]
    pub fn update(&self, row: &str, values: Value) -> Result<(), Refused> {
        let values = row_data(&values)?;
        self.change(|hub, state, by| changes::update(hub, state, self.model, row, &values, by))?;
        Ok(())
    }

    /// Deletes a row.
    ///
    /// # Errors
    /// As the API's 404.
    pub fn delete(&self, row: &str) -> Result<(), Refused> {
        self.change(|hub, state, by| changes::delete(hub, state, self.model, row, by))
    }

    fn change<T>(
        &self,
        change: impl FnOnce(&Hub, &mut State, &By) -> Result<T, ApiError>,
    ) -> Result<T, Refused> {
        let hub = &self.emulator.hub;
        let mut state = hub.state();
        let by = By::page(hub, &state);
        Ok(change(hub, &mut state, &by)?)
    }

    /// Returns the values of a row by property id.
    #[must_use]
    pub fn get(&self, row: &str) -> Option<Value> {
        let state = self.emulator.hub.state();
        let row = state.model(self.model)?.rows.find(row)?;
        Some(json!(row.data))
    }
}

fn row_data(values: &Value) -> Result<RowData, Refused> {
    let values = values.as_object().cloned();
    let values = values.ok_or_else(|| Refused("the values are not an object".to_owned()))?;
    Ok(values.into_iter().collect())
}

/// Lists the values of `expected` that differ in `got`, by their path.
fn differences(path: &str, expected: &Value, got: &Value, found: &mut Vec<String>) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            for (name, value) in expected {
                let other = got.get(name).unwrap_or(&Value::Null);
                differences(&format!("{path}.{name}"), value, other, found);
            }
        }
        _ if expected == got => {}
        _ => found.push(format!("{path}: expected {expected}, delivered {got}")),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
