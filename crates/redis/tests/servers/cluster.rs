//! A cluster of three.

use std::pin::pin;
use std::process::{Command, Stdio};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::future::join_all;
use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Fresh, Running},
    dedupe::Ownership::Held,
    dedupe::StoreErrorKind,
};
use hookgate_redis::{RedisStore, Risk};
use redis::RedisResult;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use tokio::sync::RwLock;
use tokio::task::coop;

use super::conformance::assert_kept;
use super::{Direct, LONG, key, patient, token, until};
use crate::support::{RedisServer, done_by, free_port, needed, program, says};

struct Cluster {
    nodes: Vec<RedisServer>,
}

impl Cluster {
    async fn start() -> Option<Self> {
        let cli = program("redis-cli", &[])?;
        let mut nodes = Vec::new();
        for _ in 0..3 {
            // By default the nodes talk to each other 10,000 above their port, which may be no port
            // any more.
            let bus = free_port().to_string();
            let settings = format!(
                "--cluster-enabled yes --cluster-port {bus} --cluster-node-timeout 2000 --cluster-require-full-coverage no --appendonly yes"
            );
            // With `everysec` a node that is killed while it flushes loses the writes that it has
            // answered meanwhile.
            let settings = settings + " --appendfsync always";
            nodes.push(RedisServer::start(
                &settings.split(' ').collect::<Vec<_>>(),
            )?);
        }
        let mut create = Command::new(cli);
        create.args(["--cluster", "create"]);
        create.args(nodes.iter().map(|node| node.server.address.to_string()));
        create.arg("--cluster-yes").stdout(Stdio::null());
        assert!(create.status().unwrap().success());
        let cluster = Self { nodes };
        cluster.wait_until_ready().await;
        Some(cluster)
    }

    async fn wait_until_ready(&self) {
        for node in &self.nodes {
            let is_ready = |info: &RedisResult<String>| {
                let says = |words: &str| info.as_ref().is_ok_and(|info| info.contains(words));
                says("cluster_state:ok") && says("cluster_slots_ok:16384")
            };
            // A node that begins anew may still be reading its data.
            let ask = async || Direct::to(&node.url()).await.ask("CLUSTER INFO").await;
            until(is_ready, ask).await.unwrap();
        }
    }

    async fn store(&self, limit: Duration) -> RedisStore<ClusterConnection> {
        let client = ClusterClient::builder(self.nodes.iter().map(RedisServer::url))
            .connection_timeout(limit)
            .response_timeout(limit)
            .build()
            .unwrap();
        RedisStore::on(client.get_async_connection().await.unwrap())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_is_kept_on_a_cluster() {
    let cluster = needed!(Cluster::start().await);
    let store = cluster.store(Duration::from_secs(10)).await;
    assert_kept(store.with_call_limit(Duration::from_secs(10))).await;
    // Each node had its share.
    for node in &cluster.nodes {
        let keys: u64 = Direct::to(&node.url()).await.say("DBSIZE").await;
        assert!(keys > 0);
    }
}

// fault C16: one node of a cluster is taken for all of it, and nobody is told
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_checked_node_by_node_and_comes_back() {
    let mut cluster = needed!(Cluster::start().await);
    let store = cluster.store(Duration::from_millis(500)).await;
    let findings = store.check().await.unwrap();
    assert_eq!(findings.servers, 3);
    let limits = findings.found.iter();
    let limits = limits.filter(|one| one.risk == Risk::NoMemoryLimit);
    let mut named: Vec<_> = limits.map(|one| one.server.clone().unwrap()).collect();
    named.sort();
    let nodes = cluster.nodes.iter();
    let mut nodes: Vec<_> = nodes.map(|node| node.server.address.to_string()).collect();
    nodes.sort();
    assert_eq!(named, nodes);
    findings.strict().unwrap();
    // Queried as a server by itself, a node refuses keys of other nodes, and the check says why.
    let alone = patient(&cluster.nodes[0].url());
    let found = alone.check().await.unwrap();
    assert_eq!(found.found[0].risk, Risk::OneNode { primaries: 3 });
    let error = found.strict().unwrap_err();
    says(format!("{error:?}"), "ClusterClient");
    let mut refused = 0;
    for number in 0..30 {
        let event = key(&format!("alone-{number}"));
        let claimed = alone.claim(&event, token(), LONG).await;
        refused += usize::from(claimed.is_err());
    }
    assert!((1..30).contains(&refused), "{refused}");
    // One of them alone.
    let mut odd = Direct::to(&cluster.nodes[1].url()).await;
    odd.tell("CONFIG SET maxmemory 64mb maxmemory-policy allkeys-random")
        .await;
    let error = store.check().await.unwrap().strict().unwrap_err();
    let odd = cluster.nodes[1].server.address.to_string();
    says(format!("{error:?}"), &odd);

    let events = (0..60).map(|number| (key(&number.to_string()), token()));
    let events: Vec<_> = events.collect();
    for (event, holder) in &events {
        let claimed = until(Result::is_ok, || store.claim(event, *holder, LONG)).await;
        assert_eq!(claimed.unwrap(), Fresh);
    }
    for node in &cluster.nodes {
        Direct::to(&node.url()).await.tell("SCRIPT FLUSH").await;
    }
    for (event, _) in &events {
        let copy = token();
        let claimed = until(Result::is_ok, || store.claim(event, copy, LONG)).await;
        assert!(matches!(claimed.unwrap(), Running { .. }));
    }

    // A node goes: its events are refused, those of the others go on, also beside calls that meet
    // the lost node. Each may be refused while the client looks for the nodes, as its caller
    // repeats it.
    let mut lost = Direct::to(&cluster.nodes[0].url()).await;
    let mut of_lost = Vec::new();
    for (event, _) in &events {
        let exists = format!("EXISTS hookgate:{}", event.to_hex());
        let is_there: RedisResult<u64> = lost.ask(&exists).await;
        of_lost.push(is_there.is_ok());
    }
    let share = of_lost.iter().filter(|is_of_lost| **is_of_lost).count();
    assert!((1..60).contains(&share), "{share}");
    cluster.nodes[0].server.kill();
    let commits = events.iter().zip(&of_lost);
    let commits = commits.map(async |((event, holder), is_of_lost)| {
        if *is_of_lost {
            let error = store.commit(event, *holder, LONG).await.unwrap_err();
            assert_ne!(error.kind(), StoreErrorKind::Full);
        } else {
            let committed = until(Result::is_ok, || store.commit(event, *holder, LONG)).await;
            assert_eq!(committed.unwrap(), Held);
        }
    });
    join_all(commits).await;
    cluster.nodes[0].restart();
    cluster.wait_until_ready().await;
    for (event, holder) in &events {
        let committed = until(Result::is_ok, || store.commit(event, *holder, LONG)).await;
        assert_eq!(committed.unwrap(), Held);
        let copy = token();
        let claimed = until(Result::is_ok, || store.claim(event, copy, LONG)).await;
        assert_eq!(claimed.unwrap(), done_by(holder));
    }
}

/// The client of redis polls its calls and its search for the nodes in one task, and no call while
/// it searches. The search waits for a lock that each call takes. If a call keeps the lock because
/// the task's budget is used up, the client stops for good. An earlier deadlock of this search was
/// mended: <https://github.com/redis-rs/redis-rs/issues/2418>.
#[tokio::test]
async fn a_call_of_the_cluster_keeps_no_lock_when_its_budget_is_used_up() {
    let lock = RwLock::new(());
    while coop::has_budget_remaining() {
        coop::consume_budget().await;
    }
    let mut call = pin!(lock.read());
    let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending());
    assert!(
        lock.try_write().is_ok(),
        "see README.md, Cluster: cargo update -p tokio --precise 1.53.3"
    );
}
