//! The rules about the retention of a finished event.

use hookgate::dedupe::Ownership::Held;

use super::probe::{Answer, Kept, Probe, advance, done_by, key, token};
use crate::StoreUnderTest;

pub(super) async fn retention_ends<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let (key, next) = (key("retention"), token());
    // The lease is longer than the retention here: the lease must end with the commit.
    let by = probe.finish(&key, probe.units(4)).await?;
    advance(harness, probe, 3).await;
    probe
        .claim(
            &key,
            next,
            probe.long(),
            done_by(by),
            "before the retention's end",
        )
        .await?;
    advance(harness, probe, 2).await;
    probe
        .claim(
            &key,
            next,
            probe.long(),
            Answer::Fresh,
            "after the retention's end",
        )
        .await?;
    probe
        .commit(
            &key,
            next,
            probe.long(),
            Held,
            "of an event that came again",
        )
        .await?;
    probe
        .copy_claims(&key, done_by(next), "of an event that came again")
        .await?;

    // Here the retention is longer than the lease: the retention begins with the commit.
    let (key, holder) = (self::key("retention-long"), token());
    probe
        .claim(
            &key,
            holder,
            probe.units(2),
            Answer::Fresh,
            "of a fresh event",
        )
        .await?;
    probe
        .commit(&key, holder, probe.long(), Held, "of a running claim")
        .await?;
    advance(harness, probe, 3).await;
    probe
        .claim(
            &key,
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
    let key = key("duplicates");
    let by = probe.finish(&key, probe.units(5)).await?;
    for _ in 0..4 {
        advance(harness, probe, 1).await;
        let lease = probe.long();
        probe
            .claim(
                &key,
                token(),
                lease,
                done_by(by),
                "before the retention's end",
            )
            .await?;
    }
    advance(harness, probe, 2).await;
    probe
        .copy_claims(
            &key,
            Answer::Fresh,
            "after the retention, asked for four times within it",
        )
        .await
}

pub(super) async fn retention_is_each_records<H: StoreUnderTest>(
    harness: &H,
    probe: &Probe,
) -> Kept {
    let keys = ["longer", "shortest", "shorter", "longest"].map(key);
    let mut done = Vec::new();
    for (key, units) in keys.iter().zip([6, 2, 4, 1000]) {
        done.push((key, probe.finish(key, probe.units(units)).await?));
    }
    // After 3 and 5 units: which of the records are still remembered.
    for remembered in [[true, false, true, true], [true, false, false, true]] {
        advance(harness, probe, if remembered[2] { 3 } else { 2 }).await;
        for ((key, by), remembered) in done.iter().zip(remembered) {
            let asking = token();
            let (expected, when) = if remembered {
                (done_by(*by), "before its own retention's end")
            } else {
                (Answer::Fresh, "after its own, shorter retention")
            };
            probe
                .claim(key, asking, probe.long(), expected, when)
                .await?;
            if !remembered {
                probe
                    .release(key, asking, Held, "of a running claim")
                    .await?;
            }
        }
    }
    Ok(())
}
