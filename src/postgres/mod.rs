//! PostgreSQL: claims that processes share, claims inside your own transaction, and the inbox's table.

mod claimed;
mod claims;
mod connect;
mod effects;
mod failure;
mod forget;
mod migration;
mod pool;

use std::time::Duration;

pub use claimed::{ClaimedIn, NotFresh};
pub use claims::{FORGET_CLAIMS, PostgresStore};
pub use effects::{CLAIM_IN, ClaimValues, FORGET_EFFECTS, claim_in, claim_values_in};
pub use forget::forget;
pub use migration::{MIGRATIONS, Migration, migrate};
pub use pool::Postgres;
#[cfg(feature = "inbox")]
pub(crate) use {failure::store as store_error, pool::PATIENCE};

/// For an interval of the server, which has no more than this hundred years.
fn micros(time: Duration) -> i64 {
    const MOST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);
    i64::try_from(time.min(MOST).as_micros()).unwrap_or(i64::MAX)
}
