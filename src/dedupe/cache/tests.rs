//! Tests of this store alone, since they read its private fields.

use super::*;

/// A sender can choose ids whose digests all lie in one shard.
#[test]
fn ids_that_lie_in_one_shard_after_the_other_take_no_more_memory_than_others() {
    const RECORDS: usize = 1_000;
    let store = MokaStore::new(RECORDS);
    let mut shards: Vec<Vec<EventKey>> = vec![Vec::new(); SHARDS];
    let keys = (0_u64..).map(|n| EventKey::new("default", &n.to_string()));
    for key in keys.take(RECORDS * SHARDS * 5 / 4) {
        shards[usize::from(key.as_bytes()[0]) % SHARDS].push(key);
    }
    for key in shards.iter().flat_map(|keys| keys.iter().take(RECORDS)) {
        let (token, minute) = (ClaimToken::new(b""), Duration::from_secs(60));
        drop(store.claim(key, token, minute));
        drop(store.commit(key, token, minute));
    }
    let room = store.0.done.room();
    assert!(room < RECORDS * 4, "room for {room} commits");
}

/// A call frees at most one batch of ended records. The remaining ended records do not count as live.
#[test]
fn a_lease_that_ended_behind_many_others_lets_a_successor_in() {
    let clock = crate::ManualClock::at(crate::UnixSeconds::new(0));
    let store = MokaStore::default().with_clock(clock.clone());
    let lease = Duration::from_secs(30);
    let of_one_shard = |key: &EventKey| usize::from(key.as_bytes()[0]) % SHARDS == 0;
    let keys: Vec<_> = (0..)
        .map(|number: u32| EventKey::new("default", &number.to_string()))
        .filter(of_one_shard)
        .take(4 * BATCH)
        .collect();
    let (first, second) = (ClaimToken::new(b"{}"), ClaimToken::new(b"{}"));
    let claim = |key, token| crate::block_on(store.claim(key, token, lease)).unwrap();
    assert!(keys.iter().all(|key| claim(key, first) == Claimed::Fresh));
    clock.advance(lease);
    let [.., before, last] = &keys[..] else {
        panic!("keys are many")
    };
    let renewed = crate::block_on(store.renew(before, first, lease));
    assert_eq!(renewed.unwrap(), Ownership::Lost);
    assert_eq!(claim(last, second), Claimed::Fresh);
    assert!(matches!(claim(last, first), Claimed::Running { .. }));
}

/// A record that is removed when its retention has ended was not forgotten too early, to the nanosecond.
#[test]
fn a_record_whose_retention_has_just_ended_counts_as_no_eviction() {
    let clock = crate::ManualClock::at(crate::UnixSeconds::new(0));
    let store = MokaStore::new(1).with_clock(clock.clone());
    let seconds = Duration::from_secs;
    let finish = |id: &str| {
        let (key, token) = (EventKey::new("default", id), ClaimToken::new(b"{}"));
        crate::block_on(store.claim(&key, token, seconds(30))).unwrap();
        let held = crate::block_on(store.commit(&key, token, seconds(10)));
        assert_eq!(held.unwrap(), Ownership::Held);
    };
    finish("evt_1");
    clock.advance(seconds(10));
    finish("evt_2");
    assert_eq!((store.stats().done, store.stats().evicted), (1, 0));
    finish("evt_3");
    assert_eq!((store.stats().done, store.stats().evicted), (1, 1));
}
