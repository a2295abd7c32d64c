//! Makes a report from the attempts and the observations.

use std::collections::HashMap;

use hookgate::{EventKey, UnixSeconds};

use super::drive::Played;
use super::entry::{Entry, Standing};
use super::faults::Faults;
use super::ledger::{Ledger, Seen};
use super::report::{AttemptReport, EventReport, OtherReport, Report};

pub(super) fn conclude(
    entries: &[Entry],
    played: Played,
    ledger: &Ledger,
    faults: &Faults,
    begin: UnixSeconds,
) -> Report {
    let runs_were_seen = played.process.stands_before_a_handler();
    let mut seen = ledger.close();
    let mut begun = HashMap::<usize, usize>::new();
    for run in seen.values().flat_map(|seen| &seen.runs) {
        if let Some(attempt) = run.attempt {
            *begun.entry(attempt).or_default() += 1;
        }
    }
    let mut attempts = HashMap::<usize, Vec<AttemptReport>>::new();
    for attempt in played.attempts {
        attempts.entry(attempt.line).or_default().push(attempt);
    }
    let (mut events, mut others) = (Vec::<EventReport>::new(), Vec::new());
    let mut places = HashMap::<EventKey, usize>::new();
    for entry in entries {
        let own = attempts.remove(&entry.line).unwrap_or_default();
        let Standing::Event(named) = &entry.standing else {
            let runs = own.iter().filter_map(|it| begun.get(&it.number)).sum();
            others.push(OtherReport {
                line: entry.line,
                authentic: !entry.is_forged(),
                attempts: own,
                runs,
            });
            continue;
        };
        let place = *places.entry(named.key).or_insert_with(|| {
            let seen = seen.remove(&named.key).unwrap_or_default();
            let Seen {
                runs,
                commits,
                lost,
                unanswered,
                done_before,
                ..
            } = seen;
            events.push(EventReport {
                scope: named.scope.clone(),
                id: named.id.clone(),
                event_type: named.event_type.clone(),
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
        events[place].lines.push(entry.line);
        events[place].attempts.extend(own);
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
        processes: played.process.number + 1,
        runs_were_seen,
    }
}
