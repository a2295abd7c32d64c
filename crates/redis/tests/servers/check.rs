//! The findings about a server's settings, and whether they are true.

use hookgate::{
    DedupeStore,
    dedupe::Claimed::{Done, Fresh},
    dedupe::Ownership::Held,
    dedupe::{StoreError, StoreErrorKind},
};
use hookgate_redis::{Findings, RedisStore, Risk};

use super::{Direct, LONG, connected, key, not_connected, patient, started, token, until};
use crate::support::{Child, RedisServer, free_port, given, needed, says};

const FULL: [&str; 4] = ["--maxmemory", "64mb", "--maxmemory-policy", "noeviction"];
const ALWAYS: [&str; 4] = ["--appendonly", "yes", "--appendfsync", "always"];

async fn check(server: &RedisServer) -> Findings {
    patient(&server.url()).check().await.unwrap()
}

fn risks(findings: &Findings) -> Vec<Risk> {
    let risks = findings.found.iter().map(|finding| finding.risk.clone());
    risks.collect()
}

fn not_durable(findings: Findings) -> StoreError {
    let error = findings.strict().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotDurable);
    error
}

#[tokio::test]
async fn each_setting_is_reported_with_its_risk() {
    let (server, _, mut direct) = needed!(started(&[]).await);
    let findings = check(&server).await;
    assert_eq!(findings.servers, 1);
    let by_default = [Risk::NoAppendOnlyFile, Risk::NoMemoryLimit];
    assert_eq!(risks(&findings), by_default);
    direct
        .tell("CONFIG SET maxmemory 64mb appendonly yes")
        .await;
    let findings = check(&server).await;
    assert_eq!(risks(&findings), [Risk::FlushedEverySecond]);
    // At most one second is lost, and only where the machine fails: reported, not refused.
    findings.strict().unwrap();
    direct.tell("CONFIG SET appendfsync no").await;
    assert_eq!(risks(&check(&server).await), [Risk::FlushedBySystem]);
    direct.tell("CONFIG SET appendfsync always").await;
    let findings = check(&server).await;
    assert_eq!(risks(&findings), []);
    findings.strict().unwrap();
    // Everything at once, the gravest first; each finding has its advice.
    direct
        .tell("CONFIG SET appendonly no maxmemory-policy volatile-lru")
        .await;
    let findings = check(&server).await;
    let words: Vec<_> = findings.found.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "ids are forgotten when memory is full (maxmemory-policy is volatile-lru): set maxmemory-policy to noeviction",
            "ids are forgotten when the server ends: set appendonly to yes",
        ]
    );
    let error = not_durable(findings);
    assert_eq!(
        format!("{error:?}"),
        format!(
            "StoreError(NotDurable): this Redis may forget ids, so that events would run twice: {}",
            words.join("; ")
        )
    );
}

/// Without a subscriber of `tracing`, as in a program that does not use it.
// fault P4: a Redis that may forget ids is told to nobody in a program without `tracing`
#[tokio::test]
async fn a_server_that_may_forget_is_reported_on_stderr_without_a_subscriber() {
    if let Some(url) = given() {
        connected(&url).await;
        return;
    }
    let evicts = ["--maxmemory", "64mb", "--maxmemory-policy", "volatile-lru"];
    let server = needed!(RedisServer::start(&[&evicts[..], &ALWAYS].concat()));
    let test = "check::a_server_that_may_forget_is_reported_on_stderr_without_a_subscriber";
    let told = Child::stderr_of(test, &server.url());
    let line = "hookgate: claims on Redis: ids are forgotten when memory is full (maxmemory-policy is volatile-lru): set maxmemory-policy to noeviction";
    let lines = told.lines().filter(|told| *told == line);
    assert_eq!(lines.count(), 1, "{told}");
    assert_eq!(told.matches("claims on Redis").count(), 1, "{told}");
    let mut direct = Direct::to(&server.url()).await;
    direct.tell("CONFIG SET maxmemory-policy noeviction").await;
    let told = Child::stderr_of(test, &server.url());
    assert!(!told.contains("claims on Redis"), "{told}");
}

#[tokio::test]
async fn replicas_are_reported_and_refused() {
    let primary = needed!(RedisServer::start(&[FULL, ALWAYS].concat()));
    let port = primary.server.address.port().to_string();
    let follows = ["--replicaof", "127.0.0.1", &port];
    let replica = RedisServer::start(&[&FULL[..], &ALWAYS, &follows].concat()).unwrap();
    let has_some = |findings: &Findings| !risks(findings).is_empty();
    let findings = until(has_some, || check(&primary)).await;
    assert_eq!(risks(&findings), [Risk::Replicated { replicas: 1 }]);
    findings.strict().unwrap();
    let findings = check(&replica).await;
    assert_eq!(risks(&findings)[0], Risk::Replica);
    not_durable(findings);
}

/// As on servers of a provider, whose users may not read the settings.
#[tokio::test]
async fn what_may_not_be_read_is_said_to_be_unknown() {
    let server = needed!(RedisServer::start(&[FULL, ALWAYS].concat()));
    let mut direct = Direct::to(&server.url()).await;
    let user = "ACL SETUSER hooks on >made-up-password ~hookgate:* -@all";
    let rights = "+set +get +del +pexpire +pttl +evalsha +eval +info";
    direct.tell(&format!("{user} {rights}")).await;
    let url = format!("redis://hooks:made-up-password@{}", server.server.address);
    let store = patient(&url);
    let findings = store.check().await.unwrap();
    let unread = |what| Risk::Unread { what };
    assert_eq!(risks(&findings), [unread("appendfsync")]);
    assert_eq!(
        findings.found[0].to_string(),
        "appendfsync can't be read: allow this user to read it, or check the setting yourself"
    );
    findings.strict().unwrap();
    // These permissions are all that the store needs; the docs show them.
    let (event, holder) = (key("event"), token());
    assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
    assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
    assert_eq!(store.renew(&event, holder, LONG).await.unwrap(), Held);
    assert_eq!(store.release(&event, holder).await.unwrap(), Held);
    assert_eq!(store.claim(&event, holder, LONG).await.unwrap(), Fresh);
    assert_eq!(store.commit(&event, holder, LONG).await.unwrap(), Held);
    direct.tell("ACL SETUSER hooks +config|get").await;
    assert_eq!(risks(&store.check().await.unwrap()), []);

    direct.tell("ACL SETUSER hooks -info").await;
    let findings = store.check().await.unwrap();
    assert_eq!(risks(&findings), [unread("INFO")]);
    not_durable(findings);
}

#[tokio::test]
async fn a_user_who_may_not_claim_is_found_by_the_check() {
    let server = needed!(RedisServer::start(&[FULL, ALWAYS].concat()));
    let mut direct = Direct::to(&server.url()).await;
    const ALL: [&str; 7] = ["set", "get", "del", "pexpire", "pttl", "evalsha", "eval"];
    let mut checked = async |user: &str, keys: &str, rights: &[&str], flushes: bool| {
        let rights: String = rights.iter().map(|right| format!(" +{right}")).collect();
        let made = format!(
            "ACL SETUSER {user} on >made-up-password ~{keys} -@all +info +config|get{rights}"
        );
        direct.tell(&made).await;
        if flushes {
            direct.tell("SCRIPT FLUSH").await;
        }
        let url = format!("redis://{user}:made-up-password@{}", server.server.address);
        let store = patient(&url);
        store.check().await.unwrap()
    };
    assert_eq!(risks(&checked("whole", "hookgate:*", &ALL, true).await), []);
    // Whether the server knows the scripts or not: it forgets them when it is restarted.
    for flushes in [false, true] {
        for (number, left_out) in ALL.into_iter().enumerate() {
            let rights: Vec<_> = ALL.into_iter().filter(|right| *right != left_out).collect();
            let user = format!("user_{number}_{flushes}");
            let findings = checked(&user, "hookgate:*", &rights, flushes).await;
            let risks = risks(&findings);
            let [Risk::Refused { reason }] = &risks[..] else {
                panic!("{left_out}: {risks:?}");
            };
            // Inside a script the server does not say which command it is.
            let words = [left_out, "executing the script can't run"];
            let is_named = |words: &&str| reason.to_lowercase().contains(words);
            assert!(words.iter().any(is_named), "{left_out}: {reason}");
            let error = not_durable(findings);
            says(&error, "refuses claims");
        }
    }
    let findings = checked("others", "orders:*", &ALL, false).await;
    let is_refused = matches!(&risks(&findings)[..], [Risk::Refused { .. }]);
    assert!(is_refused, "{findings:?}");
    // The probe leaves nothing behind where it is allowed, and a server that is full is none that
    // refuses for good.
    let whole = format!("redis://whole:made-up-password@{}", server.server.address);
    let whole = patient(&whole);
    let is_empty = async || Direct::to(&server.url()).await.say::<u64>("DBSIZE").await;
    until(|keys: &u64| *keys == 0, is_empty).await;
    direct.tell("CONFIG SET maxmemory 1").await;
    assert_eq!(risks(&whole.check().await.unwrap()), []);
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let server = needed!(RedisServer::start(&[]));
    let mut direct = Direct::to(&server.url()).await;
    let user = "ACL SETUSER hooks on >made-up-password ~* +@all -select";
    direct.tell(user).await;
    let address = server.server.address;
    for url in [
        format!("redis://{address}/99"),
        format!("redis://hooks:made-up-password@{address}/1"),
    ] {
        let error = not_connected(&url).await;
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
        says(&error, "no database");
        assert!(!format!("{error:?}").contains("made-up-password"));
    }
    connected(&format!("redis://{address}/1")).await;
}

/// A `#` in a password begins the fragment, and what stands before it would be the host.
#[tokio::test]
async fn a_password_that_must_be_encoded_is_said_to() {
    for bare in ["made#up", "made/up", "made?up", "12#up", "12/made@up"] {
        for start in ["redis://:", "redis://hooks:", "rediss://:", "valkey://:"] {
            let error = RedisStore::open(&format!("{start}{bare}@localhost:6379/0")).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Setting, "{bare}");
            assert!(error.to_string().contains("%23 for #"), "{bare}: {error}");
            assert!(!format!("{error:?}").contains(bare), "{error:?}");
        }
    }
    let server = needed!(RedisServer::start(&["--requirepass", "made#up@password"]));
    let address = server.server.address;
    for taken in ["made%23up%40password", "made%23up@password"] {
        connected(&format!("redis://:{taken}@{address}")).await;
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_or_refuses_the_login_is_an_error_without_the_password() {
    let unavailable = async |url: &str| {
        let error = not_connected(url).await;
        assert_eq!(error.kind(), StoreErrorKind::Unavailable);
        assert!(!format!("{error:?}").contains("made-up-password"));
    };
    let port = free_port();
    unavailable(&format!("redis://hooks:made-up-password@127.0.0.1:{port}")).await;
    for url in [
        "http://:made-up-password@localhost",
        "made-up-password",
        "redis://:made-up-password@localhost:made-up-password",
        "redis://:made-up-password@localhost/made-up-password",
        "redis://:made-up-password@localhost/?protocol=made-up-password",
    ] {
        let error = RedisStore::open(url).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting, "{error:?}");
        assert!(
            !format!("{error:?} {error}").contains("made-up"),
            "{error:?}"
        );
    }
    let server = needed!(RedisServer::start(&["--requirepass", "another"]));
    let url = format!("redis://:made-up-password@{}", server.server.address);
    unavailable(&url).await;
    let shown = format!("{:?}", RedisStore::open(&url).unwrap());
    says(&shown, server.server.address.to_string());
    assert!(!shown.contains("made-up-password"), "{shown}");
}

async fn remembered_after_a_kill(settings: &[&str]) -> Option<(bool, Findings)> {
    let mut server = RedisServer::start(settings)?;
    let store = patient(&server.url());
    let findings = store.check().await.unwrap();
    let mut events = Vec::new();
    for number in 0..100 {
        let (event, token) = (key(&number.to_string()), token());
        assert_eq!(store.claim(&event, token, LONG).await.unwrap(), Fresh);
        assert_eq!(store.commit(&event, token, LONG).await.unwrap(), Held);
        events.push((event, token));
    }
    server.restart();
    let mut remembered = 0;
    for (event, by) in &events {
        let own = token();
        let claimed = until(Result::is_ok, || store.claim(event, own, LONG)).await;
        match claimed.unwrap() {
            Done { body_mark } if body_mark == by.body_mark() => remembered += 1,
            Fresh => {}
            other => panic!("{other:?}"),
        }
    }
    assert!([0, events.len()].contains(&remembered), "{remembered}");
    Some((remembered > 0, findings))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_only_file_remembers_and_without_one_the_check_had_said_so() {
    let Some((remembered, findings)) = remembered_after_a_kill(&ALWAYS).await else {
        return;
    };
    assert!(remembered);
    findings.strict().unwrap();
    let (remembered, findings) = remembered_after_a_kill(&[]).await.unwrap();
    assert!(!remembered);
    assert!(risks(&findings).contains(&Risk::NoAppendOnlyFile));
    findings.strict().unwrap_err();
}
