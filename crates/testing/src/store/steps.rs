//! The rules of the contract: the lease and the claim token of an event, its duplicates, its
//! retention, the race, full stores.

use std::sync::Arc;
use std::time::Duration;

use hookgate::dedupe::Ownership::{Held, Lost};
use hookgate::dedupe::{Capacity, ClaimToken, Claimed, EventKey, Ownership, StoreErrorKind};
use tokio::sync::Barrier;

use super::probe::Answer::{Fresh, Running};
use super::probe::{Kept, OneEvent, Probe, StoreUnderTest, advance, answered, done_by, key, token};

pub(super) async fn lease_ends<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (event, lost, successor) = (probe.event("lease"), token(), token());
    let lease = probe.units(3);
    event.begin(lost, lease).await?;
    advance(harness, probe, 2).await;
    event
        .claim(successor, lease, Running, "before the lease's end")
        .await?;
    advance(harness, probe, 2).await;
    event
        .claim(successor, probe.long(), Fresh, "after the lease's end")
        .await?;
    event
        .commit(successor, probe.long(), Held, "by the successor")
        .await
}

pub(super) async fn stale_token<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (event, stale, successor) = (probe.event("stale"), token(), token());
    let long = probe.long();
    event.begin(stale, probe.units(1)).await?;
    advance(harness, probe, 2).await;
    let gone = "by a claim whose lease has ended";
    event.renew(stale, long, Lost, gone).await?;
    event.commit(stale, long, Lost, gone).await?;
    event.release(stale, Lost, gone).await?;
    event
        .claim(successor, long, Fresh, "by the successor")
        .await?;
    let late = "by a claim that was succeeded";
    event.renew(stale, long, Lost, late).await?;
    event.commit(stale, long, Lost, late).await?;
    event.release(stale, Lost, late).await?;
    event
        .copy_claims(Running, "after calls of a stale token")
        .await?;
    event
        .commit(successor, long, Held, "by the successor")
        .await?;
    event
        .release(stale, Lost, "by a stale token on a done event")
        .await?;
    event
        .commit(stale, long, Lost, "by a stale token on a done event")
        .await?;
    event
        .copy_claims(done_by(successor), "after calls of a stale token")
        .await
}

pub(super) async fn release_reopens(probe: &Probe) -> Kept {
    let (event, failed, next) = (probe.event("release"), token(), token());
    let long = probe.long();
    event.begin(failed, long).await?;
    event.release(failed, Held, "of a running claim").await?;
    event.claim(next, long, Fresh, "after a release").await?;
    event
        .release(failed, Lost, "by the token that released")
        .await?;
    event
        .commit(failed, long, Lost, "by the token that released")
        .await?;
    event.commit(next, long, Held, "by the next claim").await
}

pub(super) async fn renewal_holds<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (event, holder) = (probe.event("renew"), token());
    let (short, lease) = (probe.units(2), probe.units(4));
    event.begin(holder, short).await?;
    advance(harness, probe, 1).await;
    event
        .renew(holder, lease, Held, "of a running claim")
        .await?;
    advance(harness, probe, 3).await;
    let held = "after its first lease, before its renewed one ends";
    event.claim(token(), short, Running, held).await?;
    event.renew(holder, short, Held, held).await?;
    advance(harness, probe, 3).await;
    event
        .renew(holder, short, Lost, "after the renewed lease")
        .await?;
    event
        .claim(token(), short, Fresh, "after the renewed lease")
        .await
}

pub(super) async fn repeated_calls<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (event, holder) = (probe.event("repeated"), token());
    let (lease, long) = (probe.units(3), probe.long());
    let twice = "repeated by the same token";
    event.begin(holder, lease).await?;
    advance(harness, probe, 2).await;
    event.claim(holder, lease, Fresh, twice).await?;
    advance(harness, probe, 2).await;
    event
        .claim(
            token(),
            lease,
            Running,
            "within the lease of a repeated claim",
        )
        .await?;
    event
        .renew(holder, long, Held, "of a running claim")
        .await?;
    event.renew(holder, long, Held, twice).await?;
    event.end(holder, probe.units(4)).await?;
    advance(harness, probe, 2).await;
    event.commit(holder, probe.units(4), Held, twice).await?;
    event
        .claim(holder, long, done_by(holder), "after its own commit")
        .await?;
    advance(harness, probe, 3).await;
    event
        .copy_claims(Fresh, "after the retention that the first commit began")
        .await?;

    let (released, holder) = (probe.event("repeated-release"), token());
    released.begin(holder, long).await?;
    released.release(holder, Held, "of a running claim").await?;
    released.release(holder, Lost, twice).await?;
    released
        .copy_claims(Fresh, "after a repeated release")
        .await
}

/// One event is committed under the lease of its claim, and then again under the longer lease of a
/// renewal. No call has a longer lease than these, since a store may answer for the longest that it
/// was given.
pub(super) async fn repeats_end<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let event = probe.event("repeats-end");
    for (lease, renewed) in [
        (probe.units(2), None),
        (probe.units(1), Some(probe.units(3))),
    ] {
        let (holder, retain) = (token(), probe.units(6));
        event.begin(holder, lease).await?;
        if let Some(lease) = renewed {
            let running = "of a running claim";
            event.renew(holder, lease, Held, running).await?;
        }
        event.end(holder, retain).await?;
        advance(harness, probe, if renewed.is_some() { 2 } else { 1 }).await;
        let within = "repeated within one lease of the first";
        event.commit(holder, retain, Held, within).await?;
        let other = "by another token on a done event";
        event.commit(token(), retain, Lost, other).await?;
        advance(harness, probe, 2).await;
        let later = "repeated more than one lease after the first";
        event.commit(holder, retain, Lost, later).await?;
        event.claim(token(), lease, done_by(holder), later).await?;
        advance(harness, probe, 4).await;
    }
    Ok(())
}

pub(super) async fn scopes_are_separate(probe: &Probe) -> Kept {
    let ours = probe.event_of(EventKey::new("sub_1", "evt_1"));
    let theirs = probe.event_of(EventKey::new("sub_2", "evt_1"));
    let by = ours.finish(probe.long()).await?;
    let other = token();
    theirs
        .claim(
            other,
            probe.long(),
            Fresh,
            "of the same id under another scope",
        )
        .await?;
    theirs.release(other, Held, "under the other scope").await?;
    ours.copy_claims(done_by(by), "under the first scope").await
}

pub(super) async fn retry_after<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let event = probe.event("retry-after");
    let lease = probe.units(4);
    event.begin(token(), lease).await?;
    for left in [4, 2] {
        let claimed = answered("claim", probe.store.claim(&event.key, token(), lease)).await?;
        let Claimed::Running { retry_after } = claimed else {
            return Err(format!("claim of a running event answered {claimed:?}"));
        };
        if retry_after.is_zero() || retry_after > probe.units(left) {
            return Err(format!(
                "{retry_after:?} reported, {left} of 4 units are left"
            ));
        }
        advance(harness, probe, 2).await;
    }
    Ok(())
}

pub(super) async fn retention_ends<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (event, next) = (probe.event("retention"), token());
    // The lease is longer than the retention here: the lease must end with the commit.
    let by = event.finish(probe.units(4)).await?;
    advance(harness, probe, 3).await;
    event
        .claim(
            next,
            probe.long(),
            done_by(by),
            "before the retention's end",
        )
        .await?;
    advance(harness, probe, 2).await;
    event
        .claim(next, probe.long(), Fresh, "after the retention's end")
        .await?;
    event
        .commit(next, probe.long(), Held, "of an event that came again")
        .await?;
    event
        .copy_claims(done_by(next), "of an event that came again")
        .await?;

    // Here the retention is longer than the lease: the retention begins with the commit.
    let (event, holder) = (probe.event("retention-long"), token());
    event.begin(holder, probe.units(2)).await?;
    event.end(holder, probe.long()).await?;
    advance(harness, probe, 3).await;
    event
        .claim(
            next,
            probe.long(),
            done_by(holder),
            "after the lease it was done under",
        )
        .await
}

pub(super) async fn duplicates_extend_nothing<H: StoreUnderTest>(
    harness: &H,
    probe: &Probe,
) -> Kept {
    let event = probe.event("duplicates");
    let by = event.finish(probe.units(5)).await?;
    for _ in 0..4 {
        advance(harness, probe, 1).await;
        let lease = probe.long();
        event
            .claim(token(), lease, done_by(by), "before the retention's end")
            .await?;
    }
    advance(harness, probe, 2).await;
    event
        .copy_claims(Fresh, "after the retention, asked for four times within it")
        .await
}

pub(super) async fn retention_is_each_records<H: StoreUnderTest>(
    harness: &H,
    probe: &Probe,
) -> Kept {
    let mut done = Vec::new();
    for (name, units) in [
        ("longer", 6),
        ("shortest", 2),
        ("shorter", 4),
        ("longest", 1000),
    ] {
        let event = probe.event(name);
        let by = event.finish(probe.units(units)).await?;
        done.push((event, by));
    }
    // After 3 and 5 units: which of the records are still remembered.
    for remembered in [[true, false, true, true], [true, false, false, true]] {
        advance(harness, probe, if remembered[2] { 3 } else { 2 }).await;
        for ((event, by), remembered) in done.iter().zip(remembered) {
            let asking = token();
            let (expected, when) = if remembered {
                (done_by(*by), "before its own retention's end")
            } else {
                (Fresh, "after its own, shorter retention")
            };
            event.claim(asking, probe.long(), expected, when).await?;
            if !remembered {
                event.release(asking, Held, "of a running claim").await?;
            }
        }
    }
    Ok(())
}

const RACERS: usize = 64;
/// The number of events between two barriers. Each barrier brings the racers together again.
/// Between barriers they stay close to each other without one.
const EVENTS_PER_BARRIER: usize = 8;

pub(super) async fn one_winner(probe: &Probe, races: usize) -> Kept {
    let keys: Arc<Vec<_>> = Arc::new(
        (0..races)
            .map(|race| key(&format!("race-{race}")))
            .collect(),
    );
    let (line, lease) = (Arc::new(Barrier::new(RACERS)), probe.long());
    let racers: Vec<_> = (0..RACERS)
        .map(|_| {
            let (store, keys, line) = (
                Arc::clone(&probe.store),
                Arc::clone(&keys),
                Arc::clone(&line),
            );
            tokio::spawn(async move {
                let mut won = Vec::new();
                // Failures are reported at the end: a racer that left early would make the others
                // wait at the barrier for ever.
                let mut failure = None;
                for (start, heat) in keys.chunks(EVENTS_PER_BARRIER).enumerate() {
                    line.wait().await;
                    for (lane, key) in heat.iter().enumerate() {
                        let token = token();
                        match answered("claim", store.claim(key, token, lease)).await {
                            Ok(Claimed::Fresh) => {
                                won.push((start * EVENTS_PER_BARRIER + lane, token))
                            }
                            Ok(Claimed::Running { .. }) => {}
                            Ok(done) => {
                                failure = Some(format!("claim answered {done:?} before any commit"))
                            }
                            Err(error) => failure = Some(error),
                        }
                    }
                }
                failure.map_or(Ok(won), Err)
            })
        })
        .collect();
    let mut winners = vec![Vec::new(); races];
    for racer in racers {
        let won = racer
            .await
            .map_err(|error| format!("a racer failed: {error}"))??;
        for (race, token) in won {
            winners[race].push(token);
        }
    }
    for (key, winners) in keys.iter().zip(winners) {
        let [winner] = *winners else {
            return Err(format!(
                "{} of {RACERS} racers won the same event",
                winners.len()
            ));
        };
        let event = probe.event_of(*key);
        event
            .commit(winner, lease, Ownership::Held, "by the winner")
            .await?;
        event
            .claim(token(), lease, done_by(winner), "after the race")
            .await?;
    }
    Ok(())
}

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

/// Fills the store in two halves and reads both `reads` times. Adds a third half, reads the second
/// half `reads` times, and adds a fourth half. The two halves that were committed last must be
/// remembered. Time passes between halves, since a store may evict records that end at the same
/// time in any order.
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

    // The claims that the store took still work: a repeated claim, a commit, a release that makes
    // room for a new one.
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
