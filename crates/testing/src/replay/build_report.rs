//! Makes a report from the attempts and the observations.

use std::collections::HashMap;

use hookgate::{clock::UnixSeconds, dedupe::EventKey};

use super::entry::{Entry, EntryKind};
use super::faults::Faults;
use super::observations::{EventObservations, Observations};
use super::report::{AttemptReport, EventReport, OtherReport, Report};
use super::runner::Finished;

pub(super) fn build_report(
    entries: &[Entry],
    finished: Finished,
    observations: &Observations,
    faults: &Faults,
    begin: UnixSeconds,
) -> Report {
    let runs_were_seen = finished.process.has_fault_layer();
    let mut seen = observations.take();
    let mut runs_by_attempt = HashMap::<usize, usize>::new();
    for run in seen.values().flat_map(|seen| &seen.runs) {
        if let Some(attempt) = run.attempt {
            *runs_by_attempt.entry(attempt).or_default() += 1;
        }
    }
    let mut attempts = HashMap::<usize, Vec<AttemptReport>>::new();
    for attempt in finished.attempts {
        attempts.entry(attempt.line).or_default().push(attempt);
    }
    let (mut events, mut others) = (Vec::<EventReport>::new(), Vec::new());
    let mut indices = HashMap::<EventKey, usize>::new();
    for entry in entries {
        let own = attempts.remove(&entry.line).unwrap_or_default();
        let EntryKind::Event(event) = &entry.kind else {
            let runs = own
                .iter()
                .filter_map(|it| runs_by_attempt.get(&it.number))
                .sum();
            others.push(OtherReport {
                line: entry.line,
                authentic: !entry.is_forged(),
                attempts: own,
                runs,
            });
            continue;
        };
        let index = *indices.entry(event.key).or_insert_with(|| {
            let seen = seen.remove(&event.key).unwrap_or_default();
            let EventObservations {
                runs,
                commits,
                lost,
                unanswered,
                done_before,
                ..
            } = seen;
            events.push(EventReport {
                scope: event.scope.clone(),
                id: event.id.clone(),
                event_type: event.event_type.clone(),
                lines: Vec::new(),
                attempts: Vec::new(),
                runs,
                commits,
                commits_lost: lost,
                commits_unanswered: unanswered,
                done_before,
                runs_were_seen,
            });
            events.len() - 1
        });
        events[index].lines.push(entry.line);
        events[index].attempts.extend(own);
    }
    for event in &mut events {
        event.attempts.sort_by_key(|attempt| attempt.number);
        event.lines.sort_unstable();
    }
    Report {
        faults: faults.to_string(),
        began_at: begin.as_i64(),
        events,
        others,
        processes: finished.process.number + 1,
        runs_were_seen,
    }
}
