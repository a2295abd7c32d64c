//! The rules about one event: its lease, its claim token, its duplicates.

use hookgate::dedupe::Ownership::{Held, Lost};
use hookgate::{Claimed, EventKey};

use super::probe::{Answer, Kept, Probe, advance, answered, done_by, key, token};
use crate::StoreUnderTest;

pub(super) async fn lease_ends<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (key, lost, successor) = (key("lease"), token(), token());
    let lease = probe.units(3);
    probe
        .claim(&key, lost, lease, Answer::Fresh, "of a fresh event")
        .await?;
    advance(harness, probe, 2).await;
    probe
        .claim(
            &key,
            successor,
            lease,
            Answer::Running,
            "before the lease's end",
        )
        .await?;
    advance(harness, probe, 2).await;
    probe
        .claim(
            &key,
            successor,
            probe.long(),
            Answer::Fresh,
            "after the lease's end",
        )
        .await?;
    probe
        .commit(&key, successor, probe.long(), Held, "by the successor")
        .await
}

pub(super) async fn stale_token<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (key, stale, successor) = (key("stale"), token(), token());
    let long = probe.long();
    probe
        .claim(
            &key,
            stale,
            probe.units(1),
            Answer::Fresh,
            "of a fresh event",
        )
        .await?;
    advance(harness, probe, 2).await;
    let gone = "by a claim whose lease has ended";
    probe.renew(&key, stale, long, Lost, gone).await?;
    probe.commit(&key, stale, long, Lost, gone).await?;
    probe.release(&key, stale, Lost, gone).await?;
    probe
        .claim(&key, successor, long, Answer::Fresh, "by the successor")
        .await?;
    let late = "by a claim that was succeeded";
    probe.renew(&key, stale, long, Lost, late).await?;
    probe.commit(&key, stale, long, Lost, late).await?;
    probe.release(&key, stale, Lost, late).await?;
    probe
        .copy_claims(&key, Answer::Running, "after calls of a stale token")
        .await?;
    probe
        .commit(&key, successor, long, Held, "by the successor")
        .await?;
    probe
        .release(&key, stale, Lost, "by a stale token on a done event")
        .await?;
    probe
        .commit(&key, stale, long, Lost, "by a stale token on a done event")
        .await?;
    probe
        .copy_claims(&key, done_by(successor), "after calls of a stale token")
        .await
}

pub(super) async fn release_reopens(probe: &Probe) -> Kept {
    let (key, failed, next) = (key("release"), token(), token());
    let long = probe.long();
    probe
        .claim(&key, failed, long, Answer::Fresh, "of a fresh event")
        .await?;
    probe
        .release(&key, failed, Held, "of a running claim")
        .await?;
    probe
        .claim(&key, next, long, Answer::Fresh, "after a release")
        .await?;
    probe
        .release(&key, failed, Lost, "by the token that released")
        .await?;
    probe
        .commit(&key, failed, long, Lost, "by the token that released")
        .await?;
    probe
        .commit(&key, next, long, Held, "by the next claim")
        .await
}

pub(super) async fn renewal_holds<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (key, holder) = (key("renew"), token());
    let (short, lease) = (probe.units(2), probe.units(4));
    probe
        .claim(&key, holder, short, Answer::Fresh, "of a fresh event")
        .await?;
    advance(harness, probe, 1).await;
    probe
        .renew(&key, holder, lease, Held, "of a running claim")
        .await?;
    advance(harness, probe, 3).await;
    let held = "after its first lease, before its renewed one ends";
    probe
        .claim(&key, token(), short, Answer::Running, held)
        .await?;
    probe.renew(&key, holder, short, Held, held).await?;
    advance(harness, probe, 3).await;
    probe
        .renew(&key, holder, short, Lost, "after the renewed lease")
        .await?;
    probe
        .claim(
            &key,
            token(),
            short,
            Answer::Fresh,
            "after the renewed lease",
        )
        .await
}

pub(super) async fn repeated_calls<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (key, holder) = (key("repeated"), token());
    let (lease, long) = (probe.units(3), probe.long());
    let twice = "repeated by the same token";
    probe
        .claim(&key, holder, lease, Answer::Fresh, "of a fresh event")
        .await?;
    advance(harness, probe, 2).await;
    probe
        .claim(&key, holder, lease, Answer::Fresh, twice)
        .await?;
    advance(harness, probe, 2).await;
    probe
        .claim(
            &key,
            token(),
            lease,
            Answer::Running,
            "within the lease of a repeated claim",
        )
        .await?;
    probe
        .renew(&key, holder, long, Held, "of a running claim")
        .await?;
    probe.renew(&key, holder, long, Held, twice).await?;
    probe
        .commit(&key, holder, probe.units(4), Held, "of a running claim")
        .await?;
    advance(harness, probe, 2).await;
    probe
        .commit(&key, holder, probe.units(4), Held, twice)
        .await?;
    probe
        .claim(&key, holder, long, done_by(holder), "after its own commit")
        .await?;
    advance(harness, probe, 3).await;
    probe
        .copy_claims(
            &key,
            Answer::Fresh,
            "after the retention that the first commit began",
        )
        .await?;

    let (released, holder) = (EventKey::new("default", "repeated-release"), token());
    probe
        .claim(&released, holder, long, Answer::Fresh, "of a fresh event")
        .await?;
    probe
        .release(&released, holder, Held, "of a running claim")
        .await?;
    probe.release(&released, holder, Lost, twice).await?;
    probe
        .copy_claims(&released, Answer::Fresh, "after a repeated release")
        .await
}

/// One event is committed under the lease of its claim, and then again under the longer lease of a renewal. No call has a longer lease
/// than these, since a store may answer for the longest that it was given.
pub(super) async fn repeats_end<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let key = key("repeats-end");
    for (lease, renewed) in [
        (probe.units(2), None),
        (probe.units(1), Some(probe.units(3))),
    ] {
        let (holder, retain) = (token(), probe.units(6));
        probe
            .claim(&key, holder, lease, Answer::Fresh, "of a fresh event")
            .await?;
        if let Some(lease) = renewed {
            let running = "of a running claim";
            probe.renew(&key, holder, lease, Held, running).await?;
        }
        probe
            .commit(&key, holder, retain, Held, "of a running claim")
            .await?;
        advance(harness, probe, if renewed.is_some() { 2 } else { 1 }).await;
        let within = "repeated within one lease of the first";
        probe.commit(&key, holder, retain, Held, within).await?;
        let other = "by another token on a done event";
        probe.commit(&key, token(), retain, Lost, other).await?;
        advance(harness, probe, 2).await;
        let later = "repeated more than one lease after the first";
        probe.commit(&key, holder, retain, Lost, later).await?;
        probe
            .claim(&key, token(), lease, done_by(holder), later)
            .await?;
        advance(harness, probe, 4).await;
    }
    Ok(())
}

pub(super) async fn scopes_are_separate(probe: &Probe) -> Kept {
    let (ours, theirs) = (
        EventKey::new("sub_1", "evt_1"),
        EventKey::new("sub_2", "evt_1"),
    );
    let by = probe.finish(&ours, probe.long()).await?;
    let other = token();
    probe
        .claim(
            &theirs,
            other,
            probe.long(),
            Answer::Fresh,
            "of the same id under another scope",
        )
        .await?;
    probe
        .release(&theirs, other, Held, "under the other scope")
        .await?;
    probe
        .copy_claims(&ours, done_by(by), "under the first scope")
        .await
}

pub(super) async fn retry_after<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let key = key("retry-after");
    let lease = probe.units(4);
    probe
        .claim(&key, token(), lease, Answer::Fresh, "of a fresh event")
        .await?;
    for left in [4, 2] {
        let claimed = answered("claim", probe.store.claim(&key, token(), lease)).await?;
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
