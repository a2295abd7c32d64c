//! A PostgreSQL of a test's own.

use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::server::{Server, free_port, program};

/// Where Debian keeps the server's programs.
const BESIDE: [&str; 4] = [
    "/usr/lib/postgresql/17/bin",
    "/usr/lib/postgresql/16/bin",
    "/usr/lib/postgresql/15/bin",
    "/usr/lib/postgresql/14/bin",
];
/// The user `nobody`: the server refuses to run as root.
pub(super) const NOBODY: u32 = 65_534;

pub struct PostgresServer {
    pub server: Server,
    folder: Folder,
    programs: PathBuf,
    port: u16,
    settings: Vec<String>,
    environment: Vec<(String, String)>,
}

impl PostgresServer {
    /// With these settings, such as `["log_statement=all"]`. Flushes are real unless they say
    /// otherwise.
    pub fn start(settings: &[&str]) -> Option<Self> {
        Self::start_in(settings, Vec::new())
    }

    /// With this environment, such as one that shifts its clock.
    pub fn start_in(settings: &[&str], environment: Vec<(String, String)>) -> Option<Self> {
        let programs = program("initdb", &BESIDE)?.parent().unwrap().to_owned();
        let folder = Folder::new();
        if is_root(folder.path()) {
            chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let mut init = command(&programs.join("initdb"), folder.path());
        let made = init
            .args(["--username=hookgate", "--auth=trust", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(folder.path().join("data"))
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(made.success());
        let port = free_port();
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let server = run(&programs, folder.path(), port, &settings, &environment);
        let this = Self {
            server,
            folder,
            programs,
            port,
            settings,
            environment,
        };
        this.wait_until_ready();
        Some(this)
    }

    /// Kills it with all that belongs to it, and starts it again on the same port.
    pub fn restart(&mut self) {
        self.crash();
        self.start_again();
    }

    /// After a [`crash`](Self::crash).
    pub fn start_again(&mut self) {
        self.server = run(
            &self.programs,
            self.folder.path(),
            self.port,
            &self.settings,
            &self.environment,
        );
        self.wait_until_ready();
    }

    /// Ends it at once, as `immediate` does: nothing is written any more, and the next start
    /// recovers.
    pub fn crash(&mut self) {
        if !self.folder.path().join("data/postmaster.pid").exists() {
            return; // It has ended already.
        }
        self.server.signal("QUIT");
        std::thread::sleep(Duration::from_millis(50));
        let until = Instant::now() + Duration::from_secs(60);
        while self.folder.path().join("data/postmaster.pid").exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.server.kill();
    }

    /// For `tokio_postgres::Config::from_str`, by address and port of the server or of a proxy
    /// before it.
    pub fn config_at(address: std::net::SocketAddr) -> String {
        format!(
            "host={} port={} user=hookgate dbname=postgres connect_timeout=2",
            address.ip(),
            address.port()
        )
    }

    pub fn config(&self) -> String {
        Self::config_at(self.server.address)
    }

    /// It listens before it answers: after a crash it flushes each of its thousand files first,
    /// which takes a busy disk its time.
    fn wait_until_ready(&self) {
        let until = Instant::now() + Duration::from_secs(180);
        loop {
            let ready = Command::new(self.programs.join("pg_isready"))
                .args(["--quiet", "--host=127.0.0.1", "--port"])
                .arg(self.port.to_string())
                .status()
                .unwrap();
            if ready.success() {
                return;
            }
            assert!(Instant::now() < until, "PostgreSQL does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(super) fn is_root(folder: &Path) -> bool {
    folder.metadata().unwrap().uid() == 0
}

fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // Also on a restart, when the folder is no longer ours.
    if std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir(folder);
    command
}

fn run(
    programs: &Path,
    folder: &Path,
    port: u16,
    settings: &[String],
    environment: &[(String, String)],
) -> Server {
    let mut command = command(&programs.join("postgres"), folder);
    command.envs(environment.iter().cloned());
    command.arg("-D").arg(folder.join("data"));
    command.args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    command.args(["-c", "unix_socket_directories="]);
    for setting in settings {
        command.args(["-c", setting]);
    }
    Server::start(&mut command, port)
}
