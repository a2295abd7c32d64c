//! Servers, the proxies between them and their clients, and deliveries.

mod child;
mod client;
mod expect;
mod folder;
mod pooler;
mod postgres;
mod proxy;
mod race;
mod redis;
mod server;
mod skew;
mod tls;

pub use child::{Child, given};
pub use client::{client_at, migrated, unflushed, value};
pub(crate) use expect::needed;
pub use expect::{done_by, once_within, says, until};
pub use folder::Folder;
pub use pooler::Pooler;
pub use postgres::PostgresServer;
pub use proxy::{Fault, Proxy};
pub use race::one_run_in_two_processes;
pub use redis::RedisServer;
pub use server::{Server, free_port, program};
pub use skew::Skew;
pub use tls::Certificates;
