//! The rules about the retention of a finished event.

use hookgate::dedupe::Ownership::Held;

use super::probe::Answer::Fresh;
use super::probe::{Kept, Probe, StoreUnderTest, advance, done_by, token};

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
