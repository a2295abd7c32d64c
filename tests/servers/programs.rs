//! The program of `tests/programs` that needs servers.

#[allow(dead_code)] // its `main` takes the servers from the environment
#[path = "../programs/replicas.rs"]
mod replicas;

use crate::support::{PostgresServer, RedisServer};

#[tokio::test(flavor = "multi_thread")]
async fn ten_replicas_share_their_claims() -> Result<(), Box<dyn std::error::Error>> {
    let redis = RedisServer::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let (Some(redis), Some(postgres)) = (redis, PostgresServer::start(&["max_connections=200"]))
    else {
        return Ok(());
    };
    let postgres = format!("postgres://hookgate@{}/postgres", postgres.server.address);
    replicas::run(&redis.url(), &postgres).await
}
