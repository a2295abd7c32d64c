//! On a server of their own.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout
)] // As in the tests there.

#[path = "../../../tests/servers/support/folder.rs"]
mod folder;
#[path = "../../../tests/servers/support/postgres.rs"]
mod postgres;
#[path = "../../../tests/servers/support/proxy.rs"]
mod proxy;
#[path = "../../../tests/servers/support/server.rs"]
mod server;

use std::str::FromStr;

use ::tokio_postgres::{Client, Config, NoTls};

use self::postgres::PostgresServer;
use super::*;
use crate::inbox::contract::{Subject, Time, run_all};
use crate::postgres::migrate;

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A new database on this server, with its table, by its configuration.
async fn database(server: &str, name: &str) -> Config {
    let mut config = Config::from_str(server).unwrap();
    let client = connect(&config).await;
    client
        .batch_execute(&format!("CREATE DATABASE {name}"))
        .await
        .unwrap();
    config.dbname(name);
    migrate(&connect(&config).await).await.unwrap();
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn postgres_passes_the_contract() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = server.config();
    run_all(move |test| {
        let config = config.clone();
        async move {
            let config = database(&config, test).await;
            let table = Table::new(Postgres::new(config, NoTls));
            Subject::new(Arc::new(table), Time::Real)
        }
    })
    .await;
}
