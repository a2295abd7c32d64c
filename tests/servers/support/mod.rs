//! Servers, what stands between them and their clients, and deliveries.

mod folder;
mod postgres;
mod proxy;
mod redis;
mod server;

pub use folder::Folder;
pub use postgres::PostgresServer;
pub use proxy::{Fault, Proxy};
pub use redis::RedisServer;
pub use server::{Server, free_port, program};
