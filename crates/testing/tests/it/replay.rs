//! A log is replayed as it was recorded and with faults, and the report states the true result,
//! even if the receiver, the store or the handler reports something else.

mod apps;
mod cost;
mod faults;
mod fooled;
mod made;
mod modes;
mod recorded;
mod report;
mod restarts;
mod seeds;
mod through;

use hookgate::{Secret, clock::UnixSeconds};
use hookgate_record::LoggedDelivery;
use hookgate_testing::{DeliveryLog, Signer};

use made::*;

/// The future in time that is paused, without a test macro: for plain `#[test]` functions.
fn in_paused_time<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(future)
}
