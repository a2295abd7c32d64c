//! A Redis of a test's own.

use std::path::PathBuf;
use std::process::Command;

use super::folder::Folder;
use super::server::{Server, free_port, program};

pub struct RedisServer {
    pub server: Server,
    folder: Folder,
    program: PathBuf,
    port: u16,
    settings: Vec<String>,
    environment: Vec<(String, String)>,
}

impl RedisServer {
    /// With these settings after the port, such as `["--maxmemory", "3mb"]`. Nothing is written to
    /// disk unless they say so. `PORT` in them is its port.
    pub fn start(settings: &[&str]) -> Option<Self> {
        Self::start_in(settings, Vec::new())
    }

    /// The same with these environment variables.
    pub fn start_in(settings: &[&str], environment: Vec<(String, String)>) -> Option<Self> {
        let program = program("redis-server", &[])?;
        let folder = Folder::new();
        let settings: Vec<_> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let port = free_port();
        let server = run(&program, &folder, port, &settings, &environment);
        Some(Self {
            server,
            folder,
            program,
            port,
            settings,
            environment,
        })
    }

    /// Kills it, and starts it again on the same port, with its data on disk.
    pub fn restart(&mut self) {
        self.server.kill();
        self.server = run(
            &self.program,
            &self.folder,
            self.port,
            &self.settings,
            &self.environment,
        );
    }

    /// The same with other settings.
    pub fn restart_with(&mut self, settings: &[&str]) {
        self.settings = settings.iter().map(|&setting| setting.to_owned()).collect();
        self.restart();
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.server.address)
    }
}

fn run(
    program: &PathBuf,
    folder: &Folder,
    port: u16,
    settings: &[String],
    environment: &[(String, String)],
) -> Server {
    let mut command = Command::new(program);
    command.current_dir(folder.path());
    command.envs(environment.iter().cloned());
    command.args(["--bind", "127.0.0.1", "--save", "", "--port"]);
    command.arg(port.to_string());
    let own = |setting: &String| setting.replace("PORT", &port.to_string());
    command.args(settings.iter().map(own));
    Server::start(&mut command, port)
}
