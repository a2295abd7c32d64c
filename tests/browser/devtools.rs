//! The DevTools protocol of a browser: commands and events as JSON over one WebSocket. The crates
//! for it compile every command of the protocol, which takes as long as the rest of this package
//! and all that it depends on.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::SplitSink;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;
/// The time for the start of the browser, and for each answer. More than a test waits for a page.
const LIMIT: Duration = Duration::from_secs(60);

type Answers = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// A browser with one page.
pub(crate) struct DevTools {
    pub(crate) child: Child,
    commands: tokio::sync::Mutex<(u64, SplitSink<Socket, Message>)>,
    answers: Answers,
    /// Of the page: the browser itself has none.
    session: String,
}

impl DevTools {
    /// Starts the browser with these arguments, and opens an empty page. `on_event` gets the name
    /// and the parameters of each event.
    pub(crate) async fn launch(
        mut browser: Command,
        on_event: impl Fn(&str, &Value) + Send + 'static,
    ) -> Self {
        let mut child = browser
            .args(["--headless=new", "--remote-debugging-port=0", "about:blank"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let connected = async {
            while let Some(line) = lines.next_line().await.unwrap() {
                if let Some((_, address)) = line.split_once("listening on ") {
                    return connect_async(address).await.unwrap();
                }
            }
            panic!("the browser ended and told no address")
        };
        let (socket, _) = timeout(LIMIT, connected)
            .await
            .expect("the browser starts in time");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let (sink, mut messages) = socket.split();
        let answers = Answers::default();
        let asked = Arc::clone(&answers);
        tokio::spawn(async move {
            while let Some(Ok(message)) = messages.next().await {
                let Ok(message) = serde_json::from_slice::<Value>(&message.into_data()) else {
                    continue;
                };
                if let Some(name) = message["method"].as_str() {
                    on_event(name, &message["params"]);
                } else if let Some(id) = message["id"].as_u64()
                    && let Some(answer) = asked.lock().unwrap().remove(&id)
                {
                    let _ = answer.send(message);
                }
            }
            // No more answers come.
            asked.lock().unwrap().clear();
        });
        let mut tools = Self {
            child,
            commands: tokio::sync::Mutex::new((0, sink)),
            answers,
            session: String::new(),
        };
        let page = tools.ask_browser("Target.createTarget", json!({"url": "about:blank"}));
        let page = page.await.unwrap();
        let session = json!({"targetId": page["targetId"], "flatten": true});
        let session = tools.ask_browser("Target.attachToTarget", session).await;
        tools.session = session.unwrap()["sessionId"].as_str().unwrap().to_owned();
        tools
    }

    /// Sends a command to the page, and waits for its result.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Value, String> {
        let command = json!({"method": method, "params": params, "sessionId": self.session});
        self.send(command).await
    }

    /// Sends a command to the browser.
    pub(crate) async fn ask_browser(&self, method: &str, params: Value) -> Result<Value, String> {
        self.send(json!({"method": method, "params": params})).await
    }

    async fn send(&self, mut command: Value) -> Result<Value, String> {
        let (sender, answer) = oneshot::channel();
        {
            let mut commands = self.commands.lock().await;
            commands.0 += 1;
            command["id"] = commands.0.into();
            self.answers.lock().unwrap().insert(commands.0, sender);
            let sent = commands.1.send(command.to_string().into()).await;
            sent.map_err(|error| error.to_string())?;
        }
        let answer = timeout(LIMIT, answer)
            .await
            .map_err(|_| "the browser does not answer")?;
        let mut answer = answer.map_err(|_| "the browser is gone")?;
        match answer.get("error") {
            Some(error) => Err(error.to_string()),
            None => Ok(answer["result"].take()),
        }
    }

    /// The value of a JavaScript expression, which may be a promise.
    pub(crate) async fn evaluate(&self, expression: &str) -> Result<Value, String> {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut evaluated = self.ask("Runtime.evaluate", params).await?;
        match evaluated.get("exceptionDetails") {
            Some(thrown) => Err(thrown.to_string()),
            None => Ok(evaluated["result"]["value"].take()),
        }
    }
}
