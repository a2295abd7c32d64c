//! The rules about full stores.

use std::time::Duration;

use hookgate::{
    dedupe::Ownership::Held,
    dedupe::{Capacity, ClaimToken, StoreErrorKind},
};

use super::probe::Answer::{Fresh, Running};
use super::probe::{Kept, OneEvent, Probe, StoreUnderTest, advance, done_by, token};

const RECORDS: usize = 512;
pub(super) const EVICTING: Capacity = Capacity::new(RECORDS);
const FEW: usize = 32;
pub(super) const REFUSING: Capacity = Capacity::new(FEW).refusing_when_full();

type Events<'a> = Vec<(OneEvent<'a>, ClaimToken)>;

async fn finish<'a>(probe: &'a Probe, name: &str, count: usize) -> Result<Events<'a>, String> {
    let mut done = Vec::with_capacity(count);
    for number in 0..count {
        let event = probe.event(&format!("{name}-{number}"));
        let by = event.finish(probe.long()).await?;
        done.push((event, by));
    }
    Ok(done)
}

async fn all_done(events: &Events<'_>, when: &str) -> Kept {
    for (event, by) in events {
        event.copy_claims(done_by(*by), when).await?;
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
        all_done(&oldest, newest).await?;
        all_done(&older, newest).await?;
    }
    advance(harness, probe, 1).await;
    let newer = finish(probe, "newer", HALF).await?;
    for _ in 0..reads {
        all_done(&older, newest).await?;
    }
    advance(harness, probe, 1).await;
    let last = finish(probe, "newest", HALF).await?;
    all_done(&newer, newest).await?;
    all_done(&last, newest).await
}

pub(super) async fn running_never_evicted(probe: &Probe) -> Kept {
    let running = run(probe, RECORDS / 8, probe.long()).await?;
    finish(probe, "pressing", RECORDS * 2).await?;
    let pressed = "of an event running since before the store was full";
    for (event, holder) in running {
        event.copy_claims(Running, pressed).await?;
        event.commit(holder, probe.long(), Held, pressed).await?;
    }
    Ok(())
}

/// Claims this number of events, and ends none of them.
async fn run(probe: &Probe, count: usize, lease: Duration) -> Result<Events<'_>, String> {
    let mut running = Vec::with_capacity(count);
    for number in 0..count {
        let (event, token) = (probe.event(&format!("running-{number}")), token());
        let room = "while there is room";
        event.claim(token, lease, Fresh, room).await?;
        running.push((event, token));
    }
    Ok(running)
}

pub(super) async fn a_full_store_refuses<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let done = finish(probe, "done", FEW / 2).await?;
    let (lease, long) = (probe.units(4), probe.long());
    let running = run(probe, FEW / 2, lease).await?;
    let (fresh, asking, other) = (probe.event("fresh"), token(), probe.event("other"));
    let half = "with half its records done and half running";
    refused(probe, &fresh, asking, half).await?;
    let full = "while the store is full";
    all_done(&done, full).await?;

    // The claims that the store took still work: a repeated claim, a commit, a release that makes room for a new one.
    let [first, second, third, lapsing @ ..] = &running[..] else {
        return Err("too few records to check".into());
    };
    first.0.claim(first.1, lease, Fresh, full).await?;
    let short = probe.units(2);
    first.0.commit(first.1, short, Held, full).await?;
    third.0.commit(third.1, long, Held, full).await?;
    refused(probe, &fresh, asking, "after commits").await?;
    second.0.release(second.1, Held, full).await?;
    let released = "after a release";
    fresh.claim(asking, long, Fresh, released).await?;
    fresh.commit(asking, long, Held, released).await?;
    let taken = "after the room was taken";
    refused(probe, &other, token(), taken).await?;

    // Retentions and leases that end make room.
    advance(harness, probe, 3).await;
    probe.event("after-retention").finish(long).await?;
    refused(probe, &other, token(), taken).await?;
    advance(harness, probe, 2).await;
    finish(probe, "after-lease", lapsing.len()).await?;
    refused(probe, &other, token(), "with all its records done").await?;
    all_done(&done, "after the store was full").await
}

async fn refused(probe: &Probe, event: &OneEvent<'_>, token: ClaimToken, when: &str) -> Kept {
    match probe.store.claim(&event.key, token, probe.long()).await {
        Err(error) if error.kind() == StoreErrorKind::Full => Ok(()),
        Err(error) => Err(format!(
            "claim on a store full {when} failed otherwise: {error}"
        )),
        Ok(claimed) => Err(format!("claim on a store full {when} answered {claimed:?}")),
    }
}
