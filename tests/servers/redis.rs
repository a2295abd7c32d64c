//! `RedisStore` on a Redis of its own.

mod conformance;
mod race;
