//! Compare and set, in Redis: each script looks at one key and changes it only where it holds the caller's token.
//!
//! One key each, so that a cluster knows where to run them. All carry the flag `allow-oom`: memory that is full refuses new claims, which
//! are no scripts, but must not stop a finished run from being recorded; that takes no byte more than its claim took.

use std::sync::OnceLock;

use ::redis::aio::ConnectionLike;
use ::redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, Script, ServerErrorKind, cmd};

/// Running under this value: the lease is extended. Answers 1, else 0.
pub(super) static RENEW: Compared = Compared::new(
    "#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])",
);

/// Running under the first value: becomes the second, for so long. Answers 1, also where it is the second one already, whose time
/// goes on; else 0.
pub(super) static COMMIT: Compared = Compared::new(
    "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[2] then return 1 end
if held ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1",
);

/// Running under this value: deleted. Answers 1, else 0.
pub(super) static RELEASE: Compared = Compared::new(
    "#!lua flags=allow-oom
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])",
);

/// What a claim asks that found a running record: running under this value, the lease is extended. Answers the value and what is
/// left of its time in milliseconds, both of the same moment; nothing where there is no record any more.
pub(super) static LOOK: Compared = Compared::new(
    "#!lua flags=allow-oom
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return {held, redis.call('PTTL', KEYS[1])}",
);

pub(super) struct Compared {
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

    /// Runs it by its digest, and where the server does not know it (it was restarted, its scripts were flushed, another one took
    /// over) by its text, which it then remembers. The second command goes by its key as the first did: no other node is asked.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
        key: &str,
        arguments: &[&[u8]],
    ) -> RedisResult<T> {
        let digest = || Script::new(self.text).get_hash().to_owned();
        let by_digest = command("EVALSHA", self.digest.get_or_init(digest), key, arguments);
        match by_digest.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let by_text = command("EVAL", self.text, key, arguments);
                by_text.query_async(connection).await
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
