//! The roles of a process in the loops: a receiver, workers, or both, until it is killed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::{post, post_service};
use deadpool_postgres::{Manager, Pool, Runtime};
use fastrand::Rng;
use hookgate::{
    DeadLetter, DedupeStore, Delivery, MemoryStore, Outcome, Receiver, ReceiverBuilder, Scheme,
    Secret, WebhookLayer,
    dedupe::{ClaimedIn, StoreFuture},
    sink::{Accepted, Sink},
};
use hookgate_inbox::{Backoff, Disposition, Inbox, RunningWorkers, Workers};
use hookgate_postgres::{Postgres, PostgresStore, claim_in};
use hookgate_redis::RedisStore;
use hookgate_sqlite::{SqliteStore, open_inbox};
use http::StatusCode;
use rusqlite::{Connection, TransactionBehavior};
use tokio::net::TcpListener;
use tokio::time::sleep;
use tokio_postgres::{Config, NoTls};

use super::ledger::{Ledger, Step};
use super::sender::SECRET;

pub const LEASE: Duration = Duration::from_millis(500);
const RETAIN: Duration = Duration::from_secs(48 * 3_600);
/// So that kills alone make no dead letter of an event that can be handled.
pub const TRIES: u32 = 20;

/// The work of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Takes deliveries into the inbox.
    Accepts,
    /// Works the inbox off.
    Works,
    AcceptsAndWorks,
    /// Takes deliveries into the inbox some time after it has answered them: a bug that the loops
    /// must find.
    AcceptsTooEarly,
    /// Has the layer before the handler.
    Handles,
    /// Has the layer before a handler that claims in its own transaction.
    HandlesInTransaction,
}

const ROLES: [Role; 6] = [
    Role::Accepts,
    Role::Works,
    Role::AcceptsAndWorks,
    Role::AcceptsTooEarly,
    Role::Handles,
    Role::HandlesInTransaction,
];

/// All parameters of a process.
#[derive(Clone, Debug)]
pub struct Task {
    pub role: Role,
    /// With the ledger.
    pub folder: PathBuf,
    /// A file, a Redis or a database.
    pub store: String,
    /// Where it receives.
    pub address: SocketAddr,
    pub seed: u64,
    pub scheme: Scheme,
}

impl Task {
    pub fn write(&self) -> String {
        let role = ROLES.iter().position(|role| *role == self.role).unwrap();
        let folder = self.folder.display();
        let (store, address, seed) = (&self.store, self.address, self.seed);
        let (scheme, parent) = (self.scheme.name(), std::process::id());
        format!("{role}\n{folder}\n{store}\n{address}\n{seed}\n{scheme}\n{parent}")
    }

    /// Runs in the started process: does the task until it is killed.
    pub fn perform(given: &str) {
        let [role, folder, store, address, seed, scheme, parent] =
            given.lines().collect::<Vec<_>>()[..]
        else {
            panic!("{given:?}")
        };
        let task = Self {
            role: ROLES[role.parse::<usize>().unwrap()],
            folder: PathBuf::from(folder),
            store: store.to_owned(),
            address: address.parse().unwrap(),
            seed: seed.parse().unwrap(),
            scheme: Scheme::named(scheme).unwrap(),
        };
        let parent: u32 = parent.parse().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            task.begin().await;
            // Where the test itself was killed, no other process would kill this one.
            while std::os::unix::process::parent_id() == parent {
                sleep(Duration::from_millis(500)).await;
            }
        });
        std::process::exit(1);
    }

    async fn begin(self) {
        let handler = Handler::of(&self);
        let (role, address, scheme) = (self.role, self.address, self.scheme);
        match role {
            Role::Works => work(&self.inbox().await, handler),
            Role::AcceptsAndWorks => {
                let inbox = self.inbox().await;
                work(&inbox, handler);
                let acceptor = receiver(scheme).accept_into(inbox).unwrap();
                serve(address, post_service(acceptor));
            }
            Role::Accepts => {
                let acceptor = receiver(scheme).accept_into(self.inbox().await).unwrap();
                serve(address, post_service(acceptor));
            }
            Role::AcceptsTooEarly => {
                let inbox = TooEarly(self.inbox().await);
                let acceptor = receiver(scheme).accept_into(inbox).unwrap();
                serve(address, post_service(acceptor));
            }
            Role::Handles => {
                let layer = behind(scheme, claims(&self.store), handler.ledger.clone());
                serve(address, post(Handler::run).layer(layer).with_state(handler));
            }
            Role::HandlesInTransaction => {
                let store = Arc::new(MemoryStore::default());
                let layer = behind(scheme, store, handler.ledger.clone());
                let method = post(Handler::run_in_transaction).layer(layer);
                serve(address, method.with_state(handler));
            }
        }
    }

    /// Opened again where another process holds the file's lock for long.
    pub async fn inbox(&self) -> Inbox {
        if self.store.starts_with("host=") {
            return database(&self.store).inbox("test").unwrap();
        }
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            match open_inbox(Path::new(&self.store)) {
                Ok(inbox) => return inbox,
                Err(error) => assert!(Instant::now() < until, "{error}"),
            }
            sleep(Duration::from_millis(50)).await;
        }
    }
}

fn database(config: &str) -> Postgres {
    Postgres::new(Config::from_str(config).unwrap(), NoTls).with_connections(4)
}

fn receiver(scheme: Scheme) -> ReceiverBuilder {
    Receiver::builder()
        .scheme(scheme)
        .secret(Secret::new(SECRET).unwrap())
        .answer_within(Duration::from_secs(2))
        .lease(LEASE)
}

/// A store for the layer.
pub fn claims(store: &str) -> Arc<dyn DedupeStore> {
    if store.starts_with("redis:") {
        return Arc::new(RedisStore::open(store).unwrap());
    }
    if store.starts_with("host=") {
        return Arc::new(PostgresStore::new(&database(store), "test"));
    }
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match SqliteStore::open(store) {
            Ok(store) => return Arc::new(store),
            Err(error) => assert!(Instant::now() < until, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The file with the effects of [`Role::HandlesInTransaction`].
pub fn effects_file(store: &str) -> rusqlite::Result<Connection> {
    let connection = Connection::open(store)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.execute_batch("PRAGMA synchronous = FULL")?;
    Ok(connection)
}

/// The layer, which reports to the ledger how each run was settled.
pub fn behind(scheme: Scheme, store: Arc<dyn DedupeStore>, ledger: Ledger) -> WebhookLayer {
    let settled = receiver(scheme).store(store).on_settled(move |settled| {
        let step = match settled.outcome {
            Outcome::HandledUnrecorded(_) => Step::Lost,
            Outcome::Failed(_) => Step::Failed,
            Outcome::Replayed { .. } => Step::Found,
            _ => Step::Committed,
        };
        ledger.add(step, settled.delivery.event_id());
    });
    let receiver = settled.on_dead_letter(async |_, _| Ok(())).build();
    receiver.unwrap().layer()
}

pub fn serve(address: SocketAddr, method: axum::routing::MethodRouter) {
    let app: Router = Router::new().route("/", method);
    tokio::spawn(async move {
        // The kernel may have lent the port to a connection for a moment.
        let listener = loop {
            match TcpListener::bind(address).await {
                Ok(listener) => break listener,
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        axum::serve(listener, app).await.unwrap();
    });
}

fn work(inbox: &Inbox, handler: Handler) {
    let ledger = handler.ledger.clone();
    let running: RunningWorkers = Workers::new(inbox)
        .lease(LEASE)
        .concurrency(8)
        .max_tries(TRIES)
        .backoff(Backoff::exponential(
            Duration::from_millis(50),
            Duration::from_millis(400),
        ))
        .poll_interval(Duration::from_millis(200))
        .on_settled(move |tried| {
            let step = match tried.disposition {
                Disposition::Done | Disposition::Dead => Step::Committed,
                Disposition::Unrecorded => Step::Lost,
                _ => Step::Failed,
            };
            ledger.add(step, tried.delivery.event_id());
        })
        .start(post(Handler::run).with_state(handler))
        .unwrap();
    // Until the process is killed.
    std::mem::forget(running);
}

/// Has its effect in the ledger; in a transaction, in the database.
#[derive(Clone)]
struct Handler {
    ledger: Ledger,
    chance: Arc<Mutex<Rng>>,
    database: Option<Pool>,
    file: Option<Arc<Mutex<Connection>>>,
}

impl Handler {
    fn of(task: &Task) -> Self {
        let claims = task.role == Role::HandlesInTransaction;
        let on_postgres = task.store.starts_with("host=");
        let file = (claims && !on_postgres).then(|| effects_file(&task.store).unwrap());
        let database = (claims && on_postgres).then(|| {
            let manager = Manager::new(Config::from_str(&task.store).unwrap(), NoTls);
            Pool::builder(manager)
                .max_size(8)
                .wait_timeout(Some(Duration::from_secs(1)))
                .create_timeout(Some(Duration::from_secs(1)))
                .runtime(Runtime::Tokio1)
                .build()
                .unwrap()
        });
        Self {
            ledger: Ledger::within(&task.folder),
            chance: Arc::new(Mutex::new(Rng::with_seed(task.seed))),
            database,
            file: file.map(|file| Arc::new(Mutex::new(file))),
        }
    }

    /// Up to 60 ms, and rarely more than the lease; now and then a failure.
    fn draw(&self) -> (Duration, bool) {
        let mut chance = self.chance.lock().unwrap();
        let millis = if chance.u8(..) < 5 {
            chance.u64(600..900)
        } else {
            chance.u64(0..60)
        };
        (Duration::from_millis(millis), chance.u8(..) < 13)
    }

    async fn run(State(this): State<Self>, delivery: Delivery) -> Response {
        let event = delivery.event_id();
        this.ledger.add(Step::Begun, event);
        let (time, fails) = this.draw();
        sleep(time).await;
        if fails {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        }
        this.ledger.add(Step::Ended, event);
        if is_never_handled(event) && this.database.is_none() {
            return DeadLetter::new(NEVER).into_response();
        }
        StatusCode::NO_CONTENT.into_response()
    }

    async fn run_in_transaction(State(this): State<Self>, delivery: Delivery) -> Response {
        let event = delivery.event_id();
        this.ledger.add(Step::Begun, event);
        let (time, fails) = this.draw();
        let effect = match this.file.clone() {
            Some(file) => {
                let delivery = delivery.clone();
                let effect = move || effect_in_file(&file, &delivery, time, fails);
                tokio::task::spawn_blocking(effect).await.unwrap()
            }
            None => this.effect(&delivery, time, fails).await,
        };
        match effect {
            Ok(Ok(())) => {
                this.ledger.add(Step::Ended, event);
                StatusCode::NO_CONTENT.into_response()
            }
            Ok(Err(answer)) => answer,
            // Rolled back, or its commit's reply was lost: the claim shows it when the event
            // arrives again.
            Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
        }
    }

    async fn effect(
        &self,
        delivery: &Delivery,
        time: Duration,
        fails: bool,
    ) -> Result<Result<(), Response>, Box<dyn std::error::Error + Send + Sync>> {
        let mut client = self.database.as_ref().unwrap().get().await?;
        let transaction = client.transaction().await?;
        let claimed: ClaimedIn = claim_in(&transaction, "test", delivery, RETAIN).await?;
        if let Err(reason) = claimed.fresh() {
            return Ok(Err(reason.into_response()));
        }
        let process = i64::from(std::process::id());
        let effect = "INSERT INTO effects (event_id, process) VALUES ($1, $2)";
        transaction
            .execute(effect, &[&delivery.event_id(), &process])
            .await?;
        sleep(time).await;
        if fails {
            return Ok(Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()));
        }
        transaction.commit().await?;
        Ok(Ok(()))
    }
}

/// The same as [`Handler::effect`] in a file. One transaction writes at a time, so that each takes
/// a tenth of the time.
fn effect_in_file(
    file: &Mutex<Connection>,
    delivery: &Delivery,
    time: Duration,
    fails: bool,
) -> Result<Result<(), Response>, Box<dyn std::error::Error + Send + Sync>> {
    let mut file = file.lock().unwrap();
    let transaction = file.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let claimed = hookgate_sqlite::claim_in(&transaction, "test", delivery, RETAIN)?;
    if let Err(reason) = claimed.fresh() {
        return Ok(Err(reason.into_response()));
    }
    let effect = "INSERT INTO effects (event_id, process) VALUES (?1, ?2)";
    transaction.execute(effect, (delivery.event_id(), std::process::id()))?;
    std::thread::sleep(time / 10);
    if fails {
        return Ok(Err(StatusCode::INTERNAL_SERVER_ERROR.into_response()));
    }
    transaction.commit()?;
    Ok(Ok(()))
}

pub const NEVER: &str = "never handled, on purpose";

/// One event in fifty.
pub fn is_never_handled(event: &str) -> bool {
    event.ends_with("49") || event.ends_with("99")
}

/// A sink that answers before the delivery is durable.
#[derive(Debug)]
struct TooEarly(Inbox);

impl Sink for TooEarly {
    fn accept<'a>(&'a self, delivery: &'a Delivery, retain: Duration) -> StoreFuture<'a, Accepted> {
        let (inbox, delivery) = (self.0.clone(), delivery.clone());
        tokio::spawn(async move {
            sleep(Duration::from_millis(100)).await;
            let _ = inbox.accept(&delivery, retain).await;
        });
        StoreFuture::ready(Ok(Accepted::New))
    }
}
