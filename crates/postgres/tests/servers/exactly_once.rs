//! The example `exactly_once`, killed at chosen points and at random, under a sender that tries again until it gets a 2xx.

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use hookgate::Secret;
use hookgate_testing::Signer;
use tokio_postgres::Client;

use crate::support::{Fault, PostgresServer, Proxy, Server, client_at, free_port};

const PATIENCE: Duration = Duration::from_secs(60);
/// Random kills in CI; `HOOKGATE_KILLS` sets another number.
const KILLS: u32 = 30;

/// The example as a process, started again on the same port.
struct Example {
    port: u16,
    database: String,
    server: Server,
}

impl Example {
    fn start(database: String) -> Self {
        let port = free_port();
        let server = run(port, &database);
        Self {
            port,
            database,
            server,
        }
    }

    fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// SIGKILL, and a new process.
    fn kill_and_restart(&mut self) {
        self.server.kill();
        self.server = run(self.port, &self.database);
    }
}

/// A secret that is made for this process: the example refuses those that are published.
fn own_secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("whsec_{:016x}{:016x}", random(), random())
    })
}

/// `cargo test -p hookgate-postgres` builds the examples; another package's tests do not.
fn run(port: u16, database: &str) -> Server {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(|deps| deps.parent()).unwrap();
    let example = profile.join("examples/exactly_once");
    assert!(
        example.exists(),
        "{} is not built: run `cargo build -p hookgate-postgres --all-features --examples` first",
        example.display()
    );
    let mut command = Command::new(example);
    command
        .env("ADDR", format!("127.0.0.1:{port}"))
        .env("DATABASE_URL", database)
        .env("WEBHOOK_SECRET", own_secret());
    Server::start(&mut command, port)
}

/// One attempt. `None` where there was no answer.
fn attempt(address: SocketAddr, id: &str) -> Option<u16> {
    let body = format!(
        r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{{"Customer":"Bo"}},"createdBy":{{"id":"usr_1","name":"Bo","email":"bo@example.com"}}}}}}"#
    );
    let mut request = format!(
        "POST /webhooks HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    let signer = Signer::new(Secret::new(own_secret()).unwrap());
    for (name, value) in signer.headers(&body) {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("\r\n{body}");
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).ok()?;
    std::str::from_utf8(&answer[9..]).ok()?.parse().ok()
}

/// As the service does, only sooner: until it gets a 2xx.
fn deliver(address: SocketAddr, id: &str) -> u16 {
    let until = Instant::now() + PATIENCE;
    loop {
        match attempt(address, id) {
            Some(status) if status / 100 == 2 => return status,
            None | Some(500 | 503) => {} // an error of the database, or of the claim
            other => panic!("{id}: {other:?}"),
        }
        assert!(Instant::now() < until, "{id} is never handled");
        thread::sleep(Duration::from_millis(10));
    }
}

async fn ids(client: &Client) -> Vec<String> {
    let rows = client.query("SELECT event_id FROM orders", &[]);
    rows.await.unwrap().iter().map(|row| row.get(0)).collect()
}

async fn effects(client: &Client) -> i64 {
    let count = "SELECT count(*) FROM hookgate_effects";
    client.query_one(count, &[]).await.unwrap().get(0)
}

/// Stops the insert, or the commit, for as long as the test holds lock 1 or 2.
const POINTS: &str = "
CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN PERFORM pg_advisory_xact_lock_shared(TG_ARGV[0]::bigint); RETURN NEW; END $$;
CREATE TRIGGER at_insert BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION stop(1);
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON orders DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION stop(2)";

async fn until<F: AsyncFn() -> bool>(what: &str, holds: F) {
    let until = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < until, "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_a_chosen_point_leaves_both_or_neither() {
    let Some(database) = PostgresServer::start(&[]) else {
        return;
    };
    let proxy = Proxy::before(database.server.address);
    let mut example = Example::start(PostgresServer::config_at(proxy.address));
    let client = client_at(&database.config()).await;
    client.batch_execute(POINTS).await.unwrap();
    let stopped = async || {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
        client.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 1
    };

    // Lock, whether the answer of the server is lost as well, and how many orders the kill leaves.
    let points = [(1, false, 0), (2, false, 1), (2, true, 1)];
    for (number, (lock, lost, left)) in points.into_iter().enumerate() {
        let id = format!("evt_{number}");
        let before = ids(&client).await.len();
        let take = format!("SELECT pg_advisory_lock({lock})");
        client.batch_execute(&take).await.unwrap();
        let (address, first) = (example.address(), id.clone());
        let attempt = thread::spawn(move || attempt(address, &first));
        until("nothing came to the point", &stopped).await;
        if lost {
            proxy.set(Fault::DropReplies);
        } else {
            example.server.kill();
        }
        let give = format!("SELECT pg_advisory_unlock({lock})");
        client.batch_execute(&give).await.unwrap();
        let ended = "SELECT count(*) FROM pg_stat_activity WHERE state IN ('active', 'idle in transaction') AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
        until("the transaction does not end", async || {
            client.query_one(ended, &[]).await.unwrap().get::<_, i64>(0) == 0
        })
        .await;
        example.server.kill();
        assert_eq!(attempt.join().unwrap(), None, "killed before it answered");
        proxy.set(Fault::None);
        assert_eq!(ids(&client).await.len() - before, left, "point {number}");
        assert_eq!(effects(&client).await, ids(&client).await.len() as i64);

        example.kill_and_restart();
        let status = deliver(example.address(), &id);
        // 200: it is a duplicate. 204: the handler has run.
        assert_eq!(status, if left == 1 { 200 } else { 204 }, "point {number}");
        assert_eq!(ids(&client).await.len() - before, 1, "point {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_at_random_leave_each_order_once() {
    const SENDERS: usize = 6;
    let Some(database) = PostgresServer::start(&[]) else {
        return;
    };
    let kills = std::env::var("HOOKGATE_KILLS").map_or(KILLS, |kills| kills.parse().unwrap());
    let mut example = Example::start(database.config());
    let address = example.address();
    let enough = Arc::new(AtomicBool::new(false));
    let duplicates = Arc::new(AtomicU32::new(0));
    let senders: Vec<_> = (0..SENDERS)
        .map(|sender| {
            let (enough, duplicates) = (Arc::clone(&enough), Arc::clone(&duplicates));
            thread::spawn(move || {
                let mut sent = BTreeSet::new();
                for number in 0.. {
                    let id = format!("evt_{sender}_{number}");
                    if deliver(address, &id) == 200 {
                        duplicates.fetch_add(1, Ordering::Relaxed);
                    }
                    sent.insert(id);
                    if enough.load(Ordering::Relaxed) {
                        break;
                    }
                }
                sent
            })
        })
        .collect();
    let mut random = spread(7);
    for _ in 0..kills {
        tokio::time::sleep(Duration::from_millis(10 + random() % 190)).await;
        example.kill_and_restart();
    }
    enough.store(true, Ordering::Relaxed);
    let mut sent = BTreeSet::new();
    for sender in senders {
        sent.append(&mut sender.join().unwrap());
    }

    let client = client_at(&database.config()).await;
    let orders = ids(&client).await;
    let distinct: BTreeSet<_> = orders.iter().cloned().collect();
    assert_eq!(orders.len(), distinct.len(), "an order was written twice");
    assert_eq!(distinct, sent);
    assert_eq!(effects(&client).await, orders.len() as i64);
    println!(
        "{kills} kills, {} events, each once; of them answered as duplicates: {}",
        sent.len(),
        duplicates.load(Ordering::Relaxed)
    );
}

/// Numbers that look random, the same in every run.
fn spread(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed;
    move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}
