//! Examples as processes of their own, and deliveries to them over plain TCP.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use hookgate::{
    Secret,
    clock::{Clock, SystemClock, UnixSeconds},
    verify::{Signature, Timestamp},
};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running example; ended with its own process id when it goes out of scope.
pub(crate) struct Example {
    child: Child,
    /// Behind a lock only so that deliveries can be made from several threads.
    lines: Mutex<mpsc::Receiver<String>>,
    seen: Vec<String>,
    /// HOST:PORT, as it printed.
    pub(crate) address: String,
}

impl Example {
    /// Starts an example on a port that the system chooses, and waits for the line that names it.
    pub(crate) fn start(name: &str, variables: &[(&str, &str)]) -> Self {
        Self::start_with(name, &[], variables)
    }

    /// As [`start`](Self::start), with arguments.
    pub(crate) fn start_with(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut example = Self::spawn(name, arguments, variables);
        let line = example.line_with("listening on http://");
        let rest = line.split("http://").nth(1).unwrap();
        example.address = rest.split('/').next().unwrap().to_owned();
        example
    }

    /// Starts an example that should refuse to run. Returns its output.
    pub(crate) fn refused(name: &str, variables: &[(&str, &str)]) -> String {
        let mut example = Self::spawn(name, &[], variables);
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = example.child.try_wait().unwrap() {
                // Both ends of its output close with it, and then there are no more lines.
                let lines = example.lines.get_mut().unwrap();
                let lines = lines.iter().collect::<Vec<_>>().join("\n");
                assert!(!status.success(), "{lines}");
                return lines;
            }
            assert!(Instant::now() < until, "{name} runs all the same");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn spawn(name: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(binary(name));
        command.args(arguments);
        for inherited in [
            "ADDR",
            "MAX_BODY",
            "OPERATIONS_ADDR",
            "SECRET",
            "SECRET2",
            "STORE_CAPACITY",
            "WEBHOOK_SECRET",
            "WEBHOOK_SECRETS",
        ] {
            command.env_remove(inherited);
        }
        let mut child = command
            .env("ADDR", "127.0.0.1:0")
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = mpsc::channel();
        collect(child.stdout.take().unwrap(), sender.clone());
        collect(child.stderr.take().unwrap(), sender);
        Self {
            child,
            lines: Mutex::new(lines),
            seen: Vec::new(),
            address: String::new(),
        }
    }

    /// Waits for a printed line that contains `text`; earlier ones count too.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.seen.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.get_mut().unwrap().recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("no line with {text:?} in {:#?}", self.seen)
                }
            }
        }
    }

    /// How many lines printed so far contain `text`.
    pub(crate) fn count_lines_with(&mut self, text: &str) -> usize {
        self.seen.extend(self.lines.get_mut().unwrap().try_iter());
        self.seen.iter().filter(|line| line.contains(text)).count()
    }

    /// Asks the process to end, by its own id, and waits for it. Says whether it ended well.
    #[cfg(unix)]
    pub(crate) fn terminate(&mut self) -> bool {
        signal(&self.child, "TERM");
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.success();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    /// Opens connections that do not end by themselves, each in another state: half a head, half a
    /// body, idle after an answer, and HTTP/2 without a request, whose client answers no ping.
    pub(crate) fn held_open(&self, secret: &str) -> Vec<TcpStream> {
        let begun = |text: &[u8]| {
            let mut stream = TcpStream::connect(&self.address).unwrap();
            stream.write_all(text).unwrap();
            stream
        };
        let body = row_created("evt_half", "{}");
        let mut half_a_body = format!(
            "POST /webhooks HTTP/1.1\r\nhost: example\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in signed(secret, &body, 0) {
            write!(half_a_body, "{name}: {value}\r\n").unwrap();
        }
        let half_a_body = format!("{half_a_body}\r\n{}", &body[..body.len() / 2]);
        let mut idle = begun(b"GET /webhooks HTTP/1.1\r\nhost: example\r\n\r\n");
        idle.set_read_timeout(Some(PATIENCE)).unwrap();
        assert!(idle.read(&mut [0; 1_024]).unwrap() > 0);
        vec![
            begun(b"POST /w HTTP/1.1\r\nHo"),
            begun(half_a_body.as_bytes()),
            idle,
            begun(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        ]
    }

    /// Kills the process at once, also in the middle of a request.
    pub(crate) fn kill(&self) {
        signal(&self.child, "KILL");
    }

    pub(crate) fn deliver(&self, secret: &str, body: &str) -> Reply {
        self.send("POST", "/webhooks", &signed(secret, body, 0), body)
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], "")
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Reply {
        Reply::to(&self.address, method, path, headers, body)
    }
}

impl Reply {
    /// One request on a connection of its own.
    pub(crate) fn to(
        address: &str,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: &str,
    ) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n",
            address,
            body.len()
        );
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        // A server that refuses on the head may close before it has taken all of the body.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        Reply::parse(&String::from_utf8(text).unwrap())
    }
}

/// Whether these tools are installed. In CI, or where the tools are required, a missing one is a
/// failure; elsewhere the test names the missing tools.
pub(crate) fn tools_are_there(tools: &[&'static str], what: &str) -> bool {
    let is_missing = |tool: &&'static str| {
        let version = if *tool == "openssl" {
            "version"
        } else {
            "--version"
        };
        let mut asked = Command::new(tool);
        asked
            .arg(version)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        !asked.status().is_ok_and(|status| status.success())
    };
    let missing: Vec<_> = tools.iter().copied().filter(is_missing).collect();
    none_is_missing(&missing, what)
}

/// The same of tools that are known to be missing.
pub(crate) fn none_is_missing(missing: &[&str], what: &str) -> bool {
    let required = ["CI", "HOOKGATE_REQUIRE_TOOLS"];
    let required = required.iter().any(|name| std::env::var_os(name).is_some());
    assert!(missing.is_empty() || !required, "missing: {missing:?}");
    if !missing.is_empty() {
        eprintln!("NOT CHECKED, since {missing:?} are missing: {what}");
    }
    missing.is_empty()
}

/// Sends lines as they are printed.
fn collect(output: impl Read + Send + 'static, sender: mpsc::Sender<String>) {
    std::thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        lines.for_each(|line| drop(sender.send(line)));
    });
}

impl Drop for Example {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    fn parse(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.status == 200 && self.has("idempotent-replayed: true")
    }

    pub(crate) fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

/// A secret that is made for this process. An example refuses a secret in its environment that is
/// published, as all of this repository are.
pub(crate) fn own_secret() -> &'static str {
    static SECRET: OnceLock<String> = OnceLock::new();
    SECRET.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("whsec_{:016x}{:016x}", random(), random())
    })
}

/// The headers of a delivery signed `age` seconds ago.
pub(crate) fn signed(secret: &str, body: &str, age: i64) -> Vec<(&'static str, String)> {
    let secret = Secret::new(secret).or_else(|_| Secret::unprefixed(secret));
    let at = UnixSeconds::new(SystemClock.now().as_i64() - age);
    let timestamp = Timestamp::at(at).unwrap();
    let signature = Signature::sign(&secret.unwrap(), &timestamp, body.as_bytes());
    vec![
        ("Content-Type", "application/json".to_owned()),
        ("X-Service-Timestamp", timestamp.as_str().to_owned()),
        ("X-Service-Signature", signature.to_header_value()),
    ]
}

/// The examples are built with the tests of their package; another package's tests do not build
/// them.
pub(crate) fn binary(name: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let profile = this.parent().and_then(|deps| deps.parent()).unwrap();
    let path = profile
        .join("examples")
        .join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    assert!(
        path.exists(),
        "{} is not built: run `cargo build --workspace --all-features --examples` first",
        path.display()
    );
    path
}

/// A row.created with this id and these properties.
pub(crate) fn row_created(id: &str, properties: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","properties":{properties},"createdBy":{{"id":"usr_1","name":"Bo","email":"bo@example.com"}}}}}}"#
    )
}

/// Sends a signal, by its short name, to a process that a test has started.
#[cfg(unix)]
pub(crate) fn signal(child: &Child, name: &str) {
    let kill = format!("kill -{name} {}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(killed.success());
}
