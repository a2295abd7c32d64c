//! The rules about one event: its lease, its claim token, its duplicates.

use hookgate::{
    dedupe::Ownership::{Held, Lost},
    dedupe::{Claimed, EventKey},
};

use super::probe::Answer::{Fresh, Running};
use super::probe::{Kept, Probe, StoreUnderTest, advance, answered, done_by, token};

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

/// One event is committed under the lease of its claim, and then again under the longer lease of a renewal. No call has a longer lease
/// than these, since a store may answer for the longest that it was given.
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
