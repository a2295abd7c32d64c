//! Connections to a PostgreSQL of a test's own.

use hookgate_postgres::migrate;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Client, NoTls};

use super::PostgresServer;

pub async fn client_at(config: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(config, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// A server with its tables.
pub async fn migrated(settings: &[&str]) -> Option<PostgresServer> {
    let server = PostgresServer::start(settings)?;
    migrate(&client_at(&server.config()).await).await.unwrap();
    Some(server)
}

/// A server with its tables that does not flush, and a client of it.
pub async fn unflushed() -> Option<(PostgresServer, Client)> {
    let server = migrated(&["fsync=off"]).await?;
    let client = client_at(&server.config()).await;
    Some((server, client))
}

/// The value of a query without parameters.
pub async fn value<T: FromSqlOwned>(client: &Client, query: &str) -> T {
    client.query_one(query, &[]).await.unwrap().get(0)
}
