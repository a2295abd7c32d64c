//! Which receivers of one store share their memory.

use hookgate::{ConfigErrorKind, Receiver, ReceiverBuilder, Secret};
use hookgate_redis::RedisStore;

const ORDERS: &str = "whsec_made_up_for_the_orders";
const LEDGER: &str = "whsec_made_up_for_the_ledger";
const TAKEN: Result<(), ConfigErrorKind> = Err(ConfigErrorKind::UnusableScope);

fn with(secret: &str) -> ReceiverBuilder {
    Receiver::builder().secret(Secret::new(secret).unwrap())
}

fn kind(builder: ReceiverBuilder) -> Result<(), ConfigErrorKind> {
    builder.build().map(drop).map_err(|error| error.kind())
}

// fault F2: receivers with secrets of their own on one store silence each other's events
#[test]
fn receivers_on_redis_are_compared_by_store() {
    // Nothing connects before it is asked.
    let store = RedisStore::open("redis://127.0.0.1:1").unwrap();
    let _orders = with(ORDERS).store(store.clone()).build().unwrap();
    assert_eq!(kind(with(LEDGER).store(store.clone())), TAKEN);
    assert_eq!(kind(with(ORDERS).store(store.clone())), Ok(()));
    // Records of their own: another prefix.
    let of_ledger = store.with_prefix("ledger:");
    let _ledger = with(LEDGER).store(of_ledger.clone()).build().unwrap();
    assert_eq!(kind(with(ORDERS).store(of_ledger)), TAKEN);
}
