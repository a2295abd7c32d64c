//! A PgBouncer before a PostgreSQL, which gives each transaction any of its connections to the
//! server.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::folder::Folder;
use super::postgres::{NOBODY, PostgresServer, is_root};
use super::server::{Server, free_port, program};

pub struct Pooler {
    pub server: Server,
    _folder: Folder,
}

impl Pooler {
    /// With this many connections to the server.
    pub fn before(server: &PostgresServer, connections: usize) -> Option<Self> {
        let program = program("pgbouncer", &["/usr/sbin"])?;
        let (folder, port) = (Folder::new(), free_port());
        let users = folder.path().join("users");
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\ndefault_pool_size = {connections}\n\
             max_client_conn = 200\nlogfile = /dev/null\n",
            server.server.address.port(),
            users.display(),
        );
        fs::write(&users, "\"hookgate\" \"\"\n").unwrap();
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, settings).unwrap();
        let mut command = Command::new(program);
        // It refuses to run as root.
        if is_root(folder.path()) {
            for path in [folder.path(), &users, &file] {
                chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            command.uid(NOBODY).gid(NOBODY);
        }
        let server = Server::start(command.arg("--quiet").arg(&file), port);
        Some(Self {
            server,
            _folder: folder,
        })
    }
}
