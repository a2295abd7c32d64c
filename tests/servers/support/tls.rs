//! Servers that speak TLS alone, with the certificate of a made-up authority. It is for `localhost`
//! and `127.0.0.1`.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};

use super::folder::Folder;
use super::postgres::{NOBODY, PostgresServer, is_root};
use super::redis::RedisServer;

/// The certificates as files that the server's user alone may read.
pub struct Certificates(Folder);

impl Certificates {
    pub const AUTHORITY: &[u8] = include_bytes!("../../tls/authority.pem");
    /// An authority that has signed nothing.
    pub const OTHER: &[u8] = include_bytes!("../../tls/server.pem");

    pub fn new() -> Self {
        let folder = Folder::new();
        let this = Self(folder);
        this.write("authority.pem", Self::AUTHORITY);
        this.write("other.pem", Self::OTHER);
        this.write("server.pem", include_bytes!("../../tls/server.pem"));
        this.write("server.key", include_bytes!("../../tls/server.key"));
        this
    }

    fn write(&self, name: &str, content: &[u8]) {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        if is_root(self.0.path()) {
            chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    pub fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// A folder in which the server may make its sockets.
    pub fn sockets(&self) -> String {
        if is_root(self.0.path()) {
            chown(self.0.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        self.0.path().to_str().unwrap().to_owned()
    }

    /// A PostgreSQL that refuses connections without TLS. The role `app` needs its password.
    pub fn postgres(&self) -> Option<PostgresServer> {
        let rules = "hostssl all app all scram-sha-256\nhostssl all all all trust\n";
        self.write("hba.conf", rules.as_bytes());
        PostgresServer::start(&[
            "fsync=off",
            "ssl=on",
            &format!("ssl_cert_file={}", self.path("server.pem")),
            &format!("ssl_key_file={}", self.path("server.key")),
            &format!("hba_file={}", self.path("hba.conf")),
        ])
    }

    /// A Redis without a port for connections without TLS, on two addresses.
    pub fn redis(&self) -> Option<RedisServer> {
        RedisServer::start(&[
            "--bind",
            "127.0.0.1",
            "127.0.0.2",
            "--port",
            "0",
            "--tls-port",
            "PORT",
            "--tls-cert-file",
            &self.path("server.pem"),
            "--tls-key-file",
            &self.path("server.key"),
            "--tls-ca-cert-file",
            &self.path("authority.pem"),
            "--tls-auth-clients",
            "no",
        ])
    }
}
