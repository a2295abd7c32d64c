//! The rules about full stores.

use hookgate::dedupe::Ownership::Held;
use hookgate::{Capacity, ClaimToken, EventKey, StoreErrorKind, WhenFull};

use super::probe::{Answer, Kept, Probe, advance, done_by, key, token};
use crate::StoreUnderTest;

const RECORDS: usize = 512;
pub(super) const EVICTING: Capacity = Capacity::new(RECORDS);
const FEW: usize = 32;
pub(super) const REFUSING: Capacity = Capacity::new(FEW).with_when_full(WhenFull::Refuse);

type Events = Vec<(EventKey, ClaimToken)>;

async fn finish(probe: &Probe, name: &str, count: usize) -> Result<Events, String> {
    let mut done = Vec::with_capacity(count);
    for event in 0..count {
        let key = key(&format!("{name}-{event}"));
        done.push((key, probe.finish(&key, probe.long()).await?));
    }
    Ok(done)
}

async fn all_done(probe: &Probe, events: &[(EventKey, ClaimToken)], when: &str) -> Kept {
    for (key, by) in events {
        probe.copy_claims(key, done_by(*by), when).await?;
    }
    Ok(())
}

/// Fills the store in two halves and reads both `reads` times. Adds a third half, reads the second half `reads` times, and adds
/// a fourth half. The two halves that were committed last must be remembered. Time passes between halves, since a store may
/// evict records that end at the same time in any order.
pub(super) async fn newest_remembered<H: StoreUnderTest>(
    harness: &H,
    probe: &Probe,
    reads: usize,
) -> Kept {
    const HALF: usize = RECORDS / 2;
    let newest = "of one of the newest";
    let oldest = finish(probe, "oldest", HALF).await?;
    advance(harness, probe, 1).await;
    let older = finish(probe, "older", HALF).await?;
    for _ in 0..reads {
        all_done(probe, &oldest, newest).await?;
        all_done(probe, &older, newest).await?;
    }
    advance(harness, probe, 1).await;
    let newer = finish(probe, "newer", HALF).await?;
    for _ in 0..reads {
        all_done(probe, &older, newest).await?;
    }
    advance(harness, probe, 1).await;
    let last = finish(probe, "newest", HALF).await?;
    all_done(probe, &newer, newest).await?;
    all_done(probe, &last, newest).await
}

pub(super) async fn running_never_evicted(probe: &Probe) -> Kept {
    let mut running = Vec::new();
    for event in 0..RECORDS / 8 {
        let (key, token) = (key(&format!("running-{event}")), token());
        probe
            .claim(&key, token, probe.long(), Answer::Fresh, "of a fresh event")
            .await?;
        running.push((key, token));
    }
    finish(probe, "pressing", RECORDS * 2).await?;
    for (key, holder) in running {
        let pressed = "of an event running since before the store was full";
        probe.copy_claims(&key, Answer::Running, pressed).await?;
        probe
            .commit(&key, holder, probe.long(), Held, pressed)
            .await?;
    }
    Ok(())
}

pub(super) async fn a_full_store_refuses<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let done = finish(probe, "done", FEW / 2).await?;
    let mut running = Vec::new();
    for event in 0..FEW / 2 {
        let (key, token) = (key(&format!("running-{event}")), token());
        let lease = probe.units(4);
        probe
            .claim(&key, token, lease, Answer::Fresh, "while there is room")
            .await?;
        running.push((key, token));
    }
    let (fresh, asking) = (key("fresh"), token());
    refused(
        probe,
        &fresh,
        asking,
        "with half its records done and half running",
    )
    .await?;
    all_done(probe, &done, "while the store is full").await?;

    // The claims that the store took still work: a repeated claim, a commit, a release that makes room for a new one.
    let [first, second, third, lapsing @ ..] = &running[..] else {
        return Err("too few records to check".into());
    };
    probe
        .claim(
            &first.0,
            first.1,
            probe.units(4),
            Answer::Fresh,
            "repeated while full",
        )
        .await?;
    probe
        .commit(
            &first.0,
            first.1,
            probe.units(2),
            Held,
            "while the store is full",
        )
        .await?;
    probe
        .commit(
            &third.0,
            third.1,
            probe.long(),
            Held,
            "while the store is full",
        )
        .await?;
    refused(probe, &fresh, asking, "after commits").await?;
    probe
        .release(&second.0, second.1, Held, "while the store is full")
        .await?;
    probe
        .claim(
            &fresh,
            asking,
            probe.long(),
            Answer::Fresh,
            "after a release",
        )
        .await?;
    probe
        .commit(
            &fresh,
            asking,
            probe.long(),
            Held,
            "of what was taken after a release",
        )
        .await?;
    refused(probe, &key("other"), token(), "after the room was taken").await?;

    // Retentions and leases that end make room.
    advance(harness, probe, 3).await;
    probe.finish(&key("after-retention"), probe.long()).await?;
    refused(probe, &key("other"), token(), "after the room was taken").await?;
    advance(harness, probe, 2).await;
    for event in 0..lapsing.len() {
        probe
            .finish(&key(&format!("after-lease-{event}")), probe.long())
            .await?;
    }
    refused(probe, &key("other"), token(), "with all its records done").await?;
    all_done(probe, &done, "after the store was full").await
}

async fn refused(probe: &Probe, key: &EventKey, token: ClaimToken, when: &str) -> Kept {
    match probe.store.claim(key, token, probe.long()).await {
        Err(error) if error.kind() == StoreErrorKind::Full => Ok(()),
        Err(error) => Err(format!(
            "claim on a store full {when} failed otherwise: {error}"
        )),
        Ok(claimed) => Err(format!("claim on a store full {when} answered {claimed:?}")),
    }
}
