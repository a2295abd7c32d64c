//! The code of docs/redis.md, compiled: it needs a feature of the crate `redis` that hookgate does without.
#![forbid(unsafe_code)]

#[cfg(all(doctest, feature = "redis"))]
#[doc = include_str!("../docs/redis.md")]
struct Redis;
