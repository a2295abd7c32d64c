//! Reads the server's settings that decide whether ids may be forgotten, and tries whether the
//! server takes claims.

use std::time::Duration;

use hookgate::dedupe::{ClaimToken, EventKey, StoreError, StoreErrorKind};
use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, RedisError, ServerErrorKind, Value, cmd};
use tokio::time::timeout;

use crate::failure::NO_DATABASE;
#[cfg(feature = "tls")]
use crate::failure::store_error;
use crate::finding::{Finding, Findings, Risk};
use crate::record;
use crate::script::{LOOK, RELEASE};

/// The limit of the whole check, connecting included.
const LIMIT: Duration = Duration::from_secs(5);
/// The kinds of a command that the server does not allow this user, or does not know.
const REFUSED: [ErrorKind; 2] = [
    ErrorKind::Server(ServerErrorKind::NoPerm),
    ErrorKind::Server(ServerErrorKind::ResponseError),
];
/// The least version: it has `SET` with both `NX` and `GET`, and scripts that may run when memory
/// is full.
const LEAST: (u64, u64) = (7, 0);

pub(crate) async fn check<C: ConnectionLike>(
    connection: &mut C,
    prefix: &str,
) -> Result<Findings, StoreError> {
    let looked = timeout(LIMIT, look(connection, prefix)).await;
    looked.unwrap_or_else(|_| Err(unreachable("it does not answer")))
}

async fn look<C: ConnectionLike>(connection: &mut C, prefix: &str) -> Result<Findings, StoreError> {
    let reports = reports(ask(connection, &cmd("INFO")).await?);
    let servers = reports.len();
    let (mut found, mut appends) = (Vec::new(), false);
    if let [(None, Some(info))] = &reports[..]
        && Info(info).is("cluster_enabled", "1")
    {
        let risk = share(connection).await?;
        found.extend(risk.map(|risk| Finding { server: None, risk }));
    }
    for (server, info) in reports {
        // The name of a single server is known to the caller that connected to it.
        let server = server.filter(|_| servers > 1);
        let risks = match info.as_deref().map(Info) {
            Some(info) => {
                info.refuse_old()?;
                appends |= info.is("aof_enabled", "1");
                info.risks()
            }
            None => vec![Risk::Unread { what: "INFO" }],
        };
        found.extend(risks.into_iter().map(|risk| Finding {
            server: server.clone(),
            risk,
        }));
    }
    // Managed servers often deny `CONFIG`. The answer of one node of a cluster is enough: the nodes
    // have the same configuration.
    if appends {
        let when = ask(connection, cmd("CONFIG").arg("GET").arg("appendfsync")).await?;
        let risk = match when.and_then(setting).as_deref() {
            Some("always") => None,
            Some("everysec") => Some(Risk::FlushedEverySecond),
            Some(_) => Some(Risk::FlushedBySystem),
            None => Some(Risk::Unread {
                what: "appendfsync",
            }),
        };
        found.extend(risk.map(|risk| Finding { server: None, risk }));
    }
    if !found.iter().any(|finding| finding.risk.refuses()) {
        let risk = probe(connection, prefix).await?;
        found.extend(risk.map(|risk| Finding { server: None, risk }));
    }
    found.sort_by(|one, other| one.risk.cmp(&other.risk));
    Ok(Findings { servers, found })
}

/// Makes a claim of a random key and releases it, with each command that the store uses. Where the
/// release is refused, the record ends with its lease.
///
/// An error that says how the server is at this moment is no finding: its memory is full, it still
/// reads its file, it takes no writes because its snapshots fail.
async fn probe<C: ConnectionLike>(
    connection: &mut C,
    prefix: &str,
) -> Result<Option<Risk>, StoreError> {
    const LEASE_MS: &str = "5000";
    let token = ClaimToken::new(b"");
    let key = record::key(prefix, &EventKey::from_bytes(*token.as_bytes()));
    let running = record::value(record::RUNNING, token);
    let mut claim = cmd("SET");
    claim.arg(&key).arg(&running[..]);
    claim.arg("NX").arg("GET").arg("PX").arg(LEASE_MS);
    let tried = async {
        let _: Value = claim.query_async(connection).await?;
        let arguments = [&running[..], LEASE_MS.as_bytes()];
        let _: Value = LOOK.run(connection, &key, &arguments).await?;
        // By its text, since the script above may have run by its digest.
        let _: Value = RELEASE.run_text(connection, &key, &[&running]).await?;
        Ok::<_, RedisError>(())
    };
    match tried.await {
        Ok(()) => Ok(None),
        Err(error) if REFUSED.contains(&error.kind()) => Ok(Some(Risk::Refused {
            reason: error.detail().unwrap_or("no permission").to_owned(),
        })),
        Err(error) if is_state(&error) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Returns whether the server has answered, with an error of its present state.
fn is_state(error: &RedisError) -> bool {
    matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// Returns each server's name, where it is one of several, and its report, where it gives one.
fn reports(info: Option<Value>) -> Vec<(Option<String>, Option<String>)> {
    match info {
        Some(Value::Map(nodes)) => nodes
            .into_iter()
            .map(|(node, info)| (text(node), text(info)))
            .collect(),
        info => vec![(None, info.and_then(text))],
    }
}

/// Checks a node of a cluster that is used as a single server: whether other nodes keep a share of
/// the events.
async fn share<C: ConnectionLike>(connection: &mut C) -> Result<Option<Risk>, StoreError> {
    let info = ask(connection, cmd("CLUSTER").arg("INFO")).await?;
    let info = info.and_then(text).unwrap_or_default();
    Ok(match Info(&info).get("cluster_size").map(str::parse) {
        Some(Ok(primaries @ 2..)) => Some(Risk::OneNode { primaries }),
        Some(Ok(_)) => None,
        _ => Some(Risk::Unread {
            what: "CLUSTER INFO",
        }),
    })
}

/// Returns `None` where the server does not allow this user the command, or does not know the
/// command.
async fn ask<C: ConnectionLike>(
    connection: &mut C,
    command: &Cmd,
) -> Result<Option<Value>, StoreError> {
    match command.query_async(connection).await {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if REFUSED.contains(&error.kind()) => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: RedisError) -> StoreError {
    if error.kind() == ErrorKind::InvalidClientConfig {
        return StoreError::saying(StoreErrorKind::Setting, NO_DATABASE).caused_by(error);
    }
    #[cfg(feature = "tls")]
    if crate::tls::refused_handshake(&error).is_some() {
        return store_error(error);
    }
    unreachable(error)
}

fn unreachable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> StoreError {
    let message = "Redis can't be reached: look at its address, its login and whether it runs";
    StoreError::saying(StoreErrorKind::Unavailable, message).caused_by(error)
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).ok(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text),
        _ => None,
    }
}

/// Returns the value of `CONFIG GET`'s one setting: the second of two values, or that of a map.
fn setting(value: Value) -> Option<String> {
    match value {
        Value::Array(mut pair) if pair.len() == 2 => text(pair.pop()?),
        Value::Map(mut pairs) => {
            let (name, value) = pairs.pop()?;
            // From several nodes, each with its own answer, take the last.
            match value {
                Value::Array(_) | Value::Map(_) => setting(value),
                value => text(name).and(text(value)),
            }
        }
        _ => None,
    }
}

/// The answer to `INFO`: lines of `name:value`.
struct Info<'a>(&'a str);

impl<'a> Info<'a> {
    fn get(&self, name: &str) -> Option<&'a str> {
        let of = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
        self.0.lines().find_map(of).map(str::trim)
    }

    fn is(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    fn refuse_old(&self) -> Result<(), StoreError> {
        let Some(version) = self.get("redis_version") else {
            return Ok(());
        };
        let mut numbers = version.split('.').map_while(|part| part.parse().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) < LEAST => {
                let message = "this Redis is too old: take Redis 7.0 or newer, or any Valkey";
                let found = format!("it is version {version}");
                Err(StoreError::saying(StoreErrorKind::TooOld, message).caused_by(found))
            }
            _ => Ok(()),
        }
    }

    fn risks(&self) -> Vec<Risk> {
        let mut risks = Vec::new();
        if self.is("role", "slave") || self.is("role", "replica") {
            risks.push(Risk::Replica);
        }
        match (self.get("maxmemory"), self.get("maxmemory_policy")) {
            (Some("0"), _) => risks.push(Risk::NoMemoryLimit),
            (Some(_), Some("noeviction")) => {}
            (Some(_), Some(policy)) => risks.push(Risk::Evicts {
                policy: policy.to_owned(),
            }),
            _ => risks.push(Risk::Unread {
                what: "maxmemory-policy",
            }),
        }
        match self.get("aof_enabled") {
            Some("1") => {}
            Some(_) => risks.push(Risk::NoAppendOnlyFile),
            None => risks.push(Risk::Unread { what: "appendonly" }),
        }
        let replicas = self
            .get("connected_slaves")
            .and_then(|count| count.parse().ok());
        if let Some(replicas @ 1..) = replicas {
            risks.push(Risk::Replicated { replicas });
        }
        risks
    }
}

/// Logs each finding. Where no subscriber of `tracing` would see them, those that may forget ids
/// are written to stderr: an error would stop programs that run today, and silence would let events
/// run twice.
pub(crate) fn report(findings: &Findings) {
    #[cfg(feature = "tracing")]
    if tracing::dispatcher::has_been_set() {
        for finding in &findings.found {
            if finding.risk.forgets() {
                tracing::warn!(target: "hookgate", "claims on Redis: {finding}");
            } else {
                tracing::info!(target: "hookgate", "claims on Redis: {finding}");
            }
        }
        return;
    }
    let forgets = findings.found.iter();
    for finding in forgets.filter(|finding| finding.risk.forgets()) {
        eprintln!("hookgate: claims on Redis: {finding}");
    }
}

#[cfg(test)]
mod tests {
    use redis::{Pipeline, RedisFuture};

    use super::*;

    /// Answers `INFO` with this, takes claims, and refuses everything else.
    #[derive(Clone)]
    struct Server(Value);

    impl ConnectionLike for Server {
        fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
            let asked = cmd.get_packed_command();
            let says = |word: &[u8]| asked.windows(word.len()).any(|at| at == word);
            let answer = if says(b"CONFIG") {
                Err((ErrorKind::Server(ServerErrorKind::NoPerm), "refused").into())
            } else if says(b"INFO") {
                Ok(self.0.clone())
            } else {
                Ok(Value::Nil)
            };
            Box::pin(async move { answer })
        }

        fn req_packed_commands<'a>(
            &'a mut self,
            _: &'a Pipeline,
            _: usize,
            _: usize,
        ) -> RedisFuture<'a, Vec<Value>> {
            Box::pin(async { Ok(Vec::new()) })
        }

        fn get_db(&self) -> i64 {
            0
        }
    }

    fn checked(answer: Value) -> Result<Findings, StoreError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap();
        runtime.block_on(check(&mut Server(answer), "hookgate:"))
    }

    fn info(version: &str) -> Value {
        let text = format!(
            "# Server\r\nredis_version:{version}\r\nrole:master\r\nmaxmemory:1000\r\n\
             maxmemory_policy:noeviction\r\naof_enabled:1\r\nconnected_slaves:0\r\n"
        );
        Value::BulkString(text.into())
    }

    #[test]
    fn old_servers_are_refused_and_new_ones_are_not() {
        for version in ["2.8.0", "5.0.14", "6.2.14", "6.10.0"] {
            let error = checked(info(version)).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::TooOld, "{version}");
            let text = format!("{error:?}");
            assert!(text.contains("take Redis 7.0 or newer"), "{text}");
            assert!(text.contains(version), "{text}");
        }
        for version in ["7.0.0", "7.2.4", "8.4.0", "10.0.0-rc1", "unknown"] {
            checked(info(version)).unwrap();
        }
    }

    #[test]
    fn one_old_node_of_a_cluster_is_enough() {
        let node = |name: &str, version| (Value::BulkString(name.into()), info(version));
        let nodes = |versions: [&'static str; 2]| {
            Value::Map(vec![node("a:1", versions[0]), node("b:1", versions[1])])
        };
        assert_eq!(checked(nodes(["7.2.4", "7.2.4"])).unwrap().servers, 2);
        let error = checked(nodes(["7.2.4", "6.2.0"])).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::TooOld);
    }

    // fault C16: one node of a cluster is taken for all of it, and nobody is told
    #[test]
    fn one_node_is_not_the_whole_cluster() {
        let asked = |size: &str| {
            let text = format!("cluster_enabled:1\r\n{size}maxmemory:0\r\naof_enabled:1\r\n");
            let findings = checked(Value::BulkString(text.into())).unwrap();
            findings.found[0].risk.clone()
        };
        let three = Risk::OneNode { primaries: 3 };
        assert_eq!(asked("cluster_size:3\r\n"), three);
        assert!(three.forgets());
        // This node has all primaries' events.
        assert_ne!(asked("cluster_size:1\r\n"), Risk::OneNode { primaries: 1 });
        let what = "CLUSTER INFO";
        assert_eq!(asked(""), Risk::Unread { what });
    }

    /// Some managed servers leave lines out.
    #[test]
    fn lines_that_are_missing_are_not_known() {
        let findings = checked(Value::SimpleString("redis_version:7.0.0\r\n".into())).unwrap();
        let unread = |what| Risk::Unread { what };
        let risks: Vec<_> = findings.found.iter().map(|one| one.risk.clone()).collect();
        assert_eq!(risks, [unread("appendonly"), unread("maxmemory-policy")]);
        assert_eq!(
            findings.strict().unwrap_err().kind(),
            StoreErrorKind::NotDurable
        );
    }

    #[test]
    fn a_setting_is_found_in_either_protocols_answer() {
        let text = |text: &str| Value::BulkString(text.into());
        let pair = || (text("appendfsync"), text("always"));
        let array = Value::Array(vec![pair().0, pair().1]);
        assert_eq!(setting(array.clone()).as_deref(), Some("always"));
        assert_eq!(setting(Value::Map(vec![pair()])).as_deref(), Some("always"));
        let nodes = Value::Map(vec![(text("a:1"), array)]);
        assert_eq!(setting(nodes).as_deref(), Some("always"));
        assert_eq!(setting(Value::Array(Vec::new())), None);
        assert_eq!(setting(Value::Nil), None);
    }
}
