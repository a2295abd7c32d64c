//! Compare and set, in Redis: each script reads one key and changes it only where it holds the
//! caller's token.
//!
//! Each script uses one key, so that a cluster can choose the node. All have the flag `allow-oom`:
//! when memory is full, new claims, which are not scripts, are refused, but a finished run must
//! still be recorded; its record takes no more bytes than its claim.

use std::sync::OnceLock;

use redis::aio::ConnectionLike;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, cmd};

/// Running under this value: extends the lease. Answers 1, else 0.
pub(crate) static RENEW: Compared = Compared::new(
    "#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
);

/// Running under the first value: becomes the second, for the given time. Answers 1, also where it
/// is the second already for at most the fourth argument, a lease, and then leaves its time
/// unchanged; else 0.
pub(crate) static COMMIT: Compared = Compared::new(
    "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[2] then
  local age = ARGV[3] - redis.call('PTTL', KEYS[1])
  return age <= tonumber(ARGV[4]) and 1 or 0
end
if held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1",
);

/// Running under this value: deletes the record. Answers 1, else 0.
pub(crate) static RELEASE: Compared = Compared::new(
    "#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])",
);

/// For a claim that found a running record. Running under this value: extends the lease. Answers
/// the value and its remaining time in milliseconds, both of the same moment; an empty answer where
/// the record no longer exists.
pub(crate) static LOOK: Compared = Compared::new(
    "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {held, redis.call('PTTL', KEYS[1])}",
);

pub(crate) struct Compared {
    text: &'static str,
    digest: OnceLock<String>,
}

impl Compared {
    const fn new(text: &'static str) -> Self {
        Self {
            text,
            digest: OnceLock::new(),
        }
    }

    /// Runs the script by its text.
    pub(crate) async fn run_text<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
        key: &str,
        arguments: &[&[u8]],
    ) -> RedisResult<T> {
        let by_text = command("EVAL", self.text, key, arguments);
        by_text.query_async(connection).await
    }

    /// Runs the script by its digest. Where the server does not know it (after a restart, a flush
    /// of scripts or a failover), runs it by its text, which the server then keeps. The second
    /// command has the same key as the first, so it goes to the same node.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
        key: &str,
        arguments: &[&[u8]],
    ) -> RedisResult<T> {
        let digest = || Script::new(self.text).get_hash().to_owned();
        let by_digest = command("EVALSHA", self.digest.get_or_init(digest), key, arguments);
        match by_digest.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.run_text(connection, key, arguments).await
            }
            answered => answered,
        }
    }
}

fn command(name: &str, script: &str, key: &str, arguments: &[&[u8]]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(1).arg(key).arg(arguments);
    command
}
