//! Servers, the proxies before them, and children: shared with the tests of the workspace.

#[path = "../../../../tests/servers/support/app.rs"]
mod app;
#[path = "../../../../tests/servers/support/child.rs"]
mod child;
#[path = "../../../../tests/servers/support/client.rs"]
mod client;
#[path = "../../../../tests/servers/support/expect.rs"]
mod expect;
#[path = "../../../../tests/servers/support/folder.rs"]
mod folder;
#[path = "../../../../tests/servers/support/pooler.rs"]
mod pooler;
#[path = "../../../../tests/servers/support/postgres.rs"]
mod postgres;
#[path = "../../../../tests/servers/support/proxy.rs"]
mod proxy;
#[path = "../../../../tests/servers/support/race.rs"]
mod race;
#[path = "../../../../tests/servers/support/redis.rs"]
mod redis;
#[path = "../../../../tests/servers/support/row.rs"]
mod row;
#[path = "../../../../tests/servers/support/server.rs"]
mod server;
#[path = "../../../../tests/servers/support/skew.rs"]
mod skew;
#[path = "../../../../tests/servers/support/tls.rs"]
mod tls;

pub use app::App;
pub use child::{Child, given};
pub use client::{client_at, migrated, unflushed, value};
pub(crate) use expect::needed;
pub use expect::{done_by, once_within, says, until};
pub use folder::Folder;
pub use pooler::Pooler;
pub use postgres::PostgresServer;
pub use proxy::{Fault, Proxy};
pub use race::one_run_in_two_processes;
pub use row::{ExpectedOrder, in_its_lives, page_created, record, told, undated, updated};
pub use skew::Skew;
pub use tls::Certificates;
