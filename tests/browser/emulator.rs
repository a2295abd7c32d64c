//! An emulator, and a client of its control API to compare the page with.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hookgate_emulator::{Emulator, Seed};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::receiver::SECRET;
use crate::screen::{PATIENCE, Screen};

/// The sample workspace at an address that another emulator had until now: the port is given back a
/// moment later.
pub(crate) async fn started_at(address: SocketAddr) -> Emulator {
    let end = Instant::now() + PATIENCE;
    loop {
        let builder = Emulator::builder(Seed::orders()).address(address);
        match builder.start().await {
            Ok(started) => return started,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A running emulator.
pub(crate) struct Served {
    pub(crate) emulator: Emulator,
}

impl Served {
    /// The sample workspace, whose deliveries find nobody: nothing listens at port 1.
    pub(crate) async fn alone() -> Self {
        Self::delivering_to("http://127.0.0.1:1/webhooks").await
    }

    /// The sample workspace with a subscription for this URL, signed at the real time.
    pub(crate) async fn delivering_to(url: &str) -> Self {
        let seed = Seed::orders().subscription("wh_1", url, SECRET).unwrap();
        Self::of(Emulator::builder(seed)).await
    }

    pub(crate) async fn seeded(seed: &str) -> Self {
        Self::of(Emulator::builder(Seed::parse(seed).unwrap())).await
    }

    async fn of(builder: hookgate_emulator::EmulatorBuilder) -> Self {
        Self {
            emulator: builder.real_signatures().start().await.unwrap(),
        }
    }

    /// The page's address.
    pub(crate) fn page(&self, part: &str) -> String {
        format!("{}/#{part}", self.emulator.url())
    }

    pub(crate) async fn control(&self, method: &str, path: &str, body: Value) -> Value {
        let head = format!("{method} /_emulator/{path} HTTP/1.1");
        self.request(&head, body).await.1
    }

    pub(crate) async fn data(&self, path: &str) -> Value {
        self.control("GET", path, Value::Null).await["data"].take()
    }

    /// The same of a list.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let data = self.data(path).await;
        data.as_array().unwrap().clone()
    }

    /// Changes the first order of the sample.
    pub(crate) async fn change(&self, values: Value) {
        let path = "models/dm_orders/rows/row_order_1";
        let values = serde_json::json!({ "values": values });
        self.control("PATCH", path, values).await;
    }

    /// The delivery that is open on the page.
    pub(crate) async fn opened(&self, screen: &Screen) -> Value {
        let path = format!("deliveries/{}", screen.opened().await);
        self.data(&path).await
    }

    /// The status and the JSON of an answer. `head` is a request's first line with its headers.
    pub(crate) async fn request(&self, head: &str, body: Value) -> (u16, Value) {
        let body = match body {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let address = self.emulator.address();
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "{head}\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        // Whole bodies have a length; none of them comes in chunks.
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Waits until the deliveries are as expected.
    pub(crate) async fn until_deliveries(&self, is: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = self.list("deliveries").await;
            if is(&found) {
                return found;
            }
            assert!(Instant::now() < end, "{found:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
