//! A process that serves until its test is over.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server's process, killed by its own id when it goes out of scope.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

/// A port on which no server listens, and which no other call in this process returns.
///
/// It is below those that Linux gives to programs that ask for any port. It is not tried by
/// listening on it: a process that another thread starts meanwhile has that listener too until its
/// `exec`, and a test would take it for its server.
pub fn free_port() -> u16 {
    static TRIED: AtomicU32 = AtomicU32::new(0);
    // Test programs that run at the same time begin in different places.
    let first = std::process::id().wrapping_mul(101);
    loop {
        let tried = TRIED.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (first.wrapping_add(tried) % 20_000) as u16;
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}

/// The path of a program. Without the program the test is left out, unless all tools are required.
pub fn program(name: &str, beside: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = beside
        .iter()
        .map(PathBuf::from)
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("HOOKGATE_REQUIRE_TOOLS").is_none(),
            "{name} is missing: scripts/test or scripts/soak installs it"
        );
        println!("left out, for want of {name}");
    }
    found
}

impl Server {
    /// Starts it, and waits until it takes connections.
    pub fn start(command: &mut Command, port: u16) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { child, address };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(address).is_err() {
            if let Some(status) = server.child.try_wait().unwrap() {
                panic!("{command:?} ended with {status}");
            }
            assert!(Instant::now() < until, "{command:?} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// As a crash would: at once, and without clean-up.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, by its short name, to a process that a test has started.
pub fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    let sent = Command::new("sh").args(["-c", &kill]).status().unwrap();
    assert!(sent.success());
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
