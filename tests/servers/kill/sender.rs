//! The service as the receivers see it: each event is sent until it is answered 2xx, and some are
//! sent although they were.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use hookgate::{
    Scheme, Secret,
    clock::{Clock, SystemClock, UnixSeconds},
};
use hookgate_testing::Signer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::ledger::Follower;

/// Of the form that each scheme takes.
pub const SECRET: &str = "whsec_bWFkZSB1cCBmb3IgdGhlIGtpbGwgbG9vcHM=";
/// After which the sender hangs up: 5 s for the service.
const PATIENCE: Duration = Duration::from_millis(2_500);
/// Events that are on their way at once.
const UNDER_WAY: usize = 48;

pub struct Sender {
    scheme: Scheme,
    receivers: Vec<SocketAddr>,
    /// How far the receivers' clocks are ahead of this process' own.
    pub ahead: AtomicI64,
    pub stop: AtomicBool,
    /// Where a 2xx proves a run: whether that run had ended.
    follower: Option<Mutex<Follower>>,
    pub heard: Mutex<Answers>,
    under_way: AtomicUsize,
}

/// The answers.
#[derive(Default)]
pub struct Answers {
    pub sent: Vec<String>,
    pub acknowledged: Vec<String>,
    /// 2xx in all, with those of copies.
    pub successes: usize,
    pub attempts: usize,
    /// By status; 0 where no answer came.
    pub answers: BTreeMap<u16, usize>,
    /// Events whose 2xx arrived before any run of theirs had ended.
    pub early: Vec<String>,
}

impl Sender {
    pub fn to(scheme: Scheme, receivers: Vec<SocketAddr>, follower: Option<Follower>) -> Self {
        Self {
            scheme,
            receivers,
            ahead: AtomicI64::new(0),
            stop: AtomicBool::new(false),
            follower: follower.map(Mutex::new),
            heard: Mutex::default(),
            under_way: AtomicUsize::new(0),
        }
    }

    /// Sends new events until `stop` is set, and then all that were begun until each is answered
    /// 2xx.
    pub async fn run(self: Arc<Self>, mut chance: Rng) {
        let mut number = 0;
        while !self.stop.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(chance.u64(5..30))).await;
            if self.under_way.load(Ordering::SeqCst) >= UNDER_WAY {
                continue;
            }
            number += 1;
            let event = Event::new(format!("evt_{number}"), &mut chance);
            self.heard.lock().unwrap().sent.push(event.id.clone());
            // Some come twice at once.
            if chance.u8(..) < 25 {
                self.begin(event.copy(), chance.fork());
            }
            self.begin(event, chance.fork());
        }
        while self.under_way.load(Ordering::SeqCst) > 0 {
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn begin(self: &Arc<Self>, event: Event, chance: Rng) {
        self.under_way.fetch_add(1, Ordering::SeqCst);
        let sender = Arc::clone(self);
        tokio::spawn(async move {
            sender.deliver(event, chance).await;
            sender.under_way.fetch_sub(1, Ordering::SeqCst);
        });
    }

    async fn deliver(&self, event: Event, mut chance: Rng) {
        while !self.attempt(&event, &mut chance).await {
            sleep(Duration::from_millis(chance.u64(100..400))).await;
        }
        if !event.is_copy {
            self.heard
                .lock()
                .unwrap()
                .acknowledged
                .push(event.id.clone());
            // Some come again although they were answered.
            if chance.u8(..) < 25 {
                sleep(Duration::from_millis(chance.u64(1..1_000))).await;
                self.attempt(&event, &mut chance).await;
            }
        }
    }

    /// Whether it was answered 2xx. Signed again each time, and sent to any of the receivers.
    async fn attempt(&self, event: &Event, chance: &mut Rng) -> bool {
        let receiver = self.receivers[chance.usize(..self.receivers.len())];
        let now = SystemClock.now().as_i64() + self.ahead.load(Ordering::SeqCst);
        let signer = Signer::new(Secret::new(SECRET).unwrap()).scheme(self.scheme);
        let signer = signer.at(UnixSeconds::new(now));
        // Some hang up while the receiver handles the event.
        let limit = if chance.u8(..) < 13 {
            Duration::from_millis(chance.u64(1..40))
        } else {
            PATIENCE
        };
        let answer = timeout(limit, post(receiver, &signer, &event.body)).await;
        let status = answer.ok().flatten().unwrap_or(0);
        let success = (200..300).contains(&status);
        let ended = || match &self.follower {
            Some(follower) => follower.lock().unwrap().has_ended(&event.id),
            None => true,
        };
        // Read after the answer: a line that is missing now was missing then.
        let early = success && !ended();
        let mut heard = self.heard.lock().unwrap();
        heard.attempts += 1;
        heard.successes += usize::from(success);
        *heard.answers.entry(status).or_default() += 1;
        if early {
            heard.early.push(event.id.clone());
        }
        success
    }
}

struct Event {
    id: String,
    body: String,
    is_copy: bool,
}

impl Event {
    fn new(id: String, chance: &mut Rng) -> Self {
        let padding = "x".repeat(chance.usize(..2_000));
        let body =
            format!(r#"{{"id":"{id}","type":"page.created","data":{{"padding":"{padding}"}}}}"#);
        Self {
            id,
            body,
            is_copy: false,
        }
    }

    fn copy(&self) -> Self {
        Self {
            id: self.id.clone(),
            body: self.body.clone(),
            is_copy: true,
        }
    }
}

/// The answer's status, where one came. The connection is this attempt's own.
pub async fn post(receiver: SocketAddr, signer: &Signer, body: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(receiver).await.ok()?;
    let mut request = "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n".to_owned();
    for (name, value) in signer.headers(body) {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = Vec::new();
    // Cut off, it is not an answer.
    stream.read_to_end(&mut answer).await.ok()?;
    let answer = String::from_utf8_lossy(&answer);
    answer.contains("\r\n\r\n").then_some(())?;
    answer.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()
}
