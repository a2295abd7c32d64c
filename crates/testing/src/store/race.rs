//! The race.

use std::sync::Arc;

use hookgate::dedupe::{Claimed, Ownership};
use tokio::sync::Barrier;

use super::probe::{Kept, Probe, answered, done_by, key, token};

const RACERS: usize = 64;
/// The number of events between two barriers. Each barrier brings the racers together again. Between barriers they stay close to
/// each other without one.
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
                // Failures are reported at the end: a racer that left early would make the others wait at the barrier for ever.
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
