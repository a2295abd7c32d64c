//! Random sequences of calls on two engines of one file, compared with a plain model of the
//! contract.

use std::collections::{BTreeMap, HashSet};

use hookgate::clock::Clock;

use super::calls::{Call, Ending, calls};
use super::cases::each_case;
use super::*;

pub(super) const EVENTS: usize = 8;
const ROWS: usize = 3;

#[derive(Debug)]
struct Kept {
    event: usize,
    state: EntryState,
    until: u64,
    forget_at: u64,
    tries: u32,
    token: Option<ClaimToken>,
}

#[derive(Default)]
struct Model {
    entries: BTreeMap<i64, Kept>,
    /// All entries that were ever leased, each with its token.
    jobs: Vec<(EntryId, ClaimToken)>,
}

fn row_of(event: usize) -> Option<String> {
    (event % (ROWS + 1) < ROWS).then(|| format!("row_{}", event % (ROWS + 1)))
}

impl Model {
    fn holder(&mut self, job: (EntryId, ClaimToken)) -> Option<&mut Kept> {
        let entry = self.entries.get_mut(&job.0.get())?;
        (entry.token == Some(job.1)).then_some(entry)
    }

    fn lease(&mut self, request: &LeaseRequest, now: u64) -> (Vec<i64>, Vec<i64>) {
        let excepted = |id: &i64| request.except.contains(&EntryId::new(*id));
        let (mut due, mut dead, mut busy) = (Vec::new(), Vec::new(), HashSet::new());
        for (id, entry) in &mut self.entries {
            match entry.state {
                _ if excepted(id) => busy.extend(row_of(entry.event)),
                EntryState::Running if entry.until > now => busy.extend(row_of(entry.event)),
                EntryState::Running if entry.tries >= request.max_tries => {
                    (entry.state, entry.token) = (EntryState::Dead, None);
                    dead.push((entry.until, *id));
                }
                EntryState::Running => due.push((entry.until, *id)),
                EntryState::Queued if entry.until <= now => due.push((entry.until, *id)),
                _ => {}
            }
        }
        due.sort_unstable();
        dead.sort_unstable();
        let mut jobs = Vec::new();
        for (_, id) in due {
            let row = row_of(self.entries[&id].event);
            let taken = |row| request.serial_by_row && !busy.insert(row);
            if jobs.len() < request.most && !row.is_some_and(taken) {
                jobs.push(id);
            }
        }
        (jobs, dead.into_iter().map(|(_, id)| id).collect())
    }
}

fn check(calls: Vec<(bool, Call)>) {
    let (folder, clock) = (Folder::new(), manual());
    let engines = [engine(&folder, &clock), engine(&folder, &clock)];
    let mut model = Model::default();
    for (first, call) in calls {
        let engine = &engines[usize::from(first)];
        let now = clock.unix_millis();
        if !matches!(call, Call::Pass { .. }) {
            let is_over = |entry: &Kept| entry.state == EntryState::Done && entry.until <= now;
            model.entries.retain(|_, entry| !is_over(entry));
        }
        step(engine, &mut model, &clock, call);
        // Both engines show the same.
        compare(&engines[usize::from(!first)], &model, clock.unix_millis());
    }
}

fn step(engine: &SqliteEngine, model: &mut Model, clock: &ManualClock, call: Call) {
    let now = clock.unix_millis();
    match call {
        Call::Pass { seconds } => clock.advance(Duration::from_secs(seconds)),
        Call::Accept {
            event,
            other_body,
            hours,
        } => {
            let mut entry = entry(&format!("evt_{event}"), row_of(event).as_deref());
            entry.digest ^= u64::from(other_body);
            let retain = Duration::from_secs(hours * 3_600);
            let accepted = block_on(engine.accept(entry, retain)).unwrap();
            let known = model.entries.values().any(|kept| kept.event == event);
            match accepted {
                Accepted::Duplicate { .. } => assert!(known),
                Accepted::New => {
                    assert!(!known);
                    let which = Selection::all().event_id(format!("evt_{event}"));
                    let listed = block_on(engine.list(which, Page::first(2))).unwrap();
                    assert_eq!(listed.len(), 1);
                    // Later entries have greater numbers, also if the last ones were deleted.
                    let id = listed[0].id;
                    assert!(
                        model
                            .jobs
                            .iter()
                            .all(|job| job.0 < id || model.entries.contains_key(&job.0.get()))
                    );
                    let kept = Kept {
                        event,
                        state: EntryState::Queued,
                        until: now,
                        forget_at: now + u64::try_from(retain.as_millis()).unwrap(),
                        tries: 0,
                        token: None,
                    };
                    model.entries.insert(id.get(), kept);
                }
            }
        }
        Call::Lease {
            most,
            max_tries,
            serial,
            except,
        } => {
            let request = LeaseRequest {
                most,
                lease: 30 * SECOND,
                max_tries,
                run_within: None,
                serial_by_row: serial,
                except: model
                    .jobs
                    .iter()
                    .map(|job| job.0)
                    .filter(|_| except)
                    .collect(),
            };
            let (jobs, dead) = model.lease(&request, now);
            let batch = block_on(engine.lease(request)).unwrap();
            let leased: Vec<_> = batch.jobs.iter().map(|job| job.id.get()).collect();
            assert_eq!(leased, jobs);
            let dead_lettered: Vec<_> = batch
                .dead_lettered
                .iter()
                .map(|listed| listed.id.get())
                .collect();
            assert_eq!(dead_lettered, dead);
            for job in batch.jobs {
                let kept = model.entries.get_mut(&job.id.get()).unwrap();
                (kept.state, kept.until) = (EntryState::Running, now + 30_000);
                (kept.tries, kept.token) = (kept.tries + 1, Some(job.token));
                assert_eq!(job.tries, kept.tries);
                assert_eq!(job.entry.event_id, format!("evt_{}", kept.event));
                assert!(!job.entry.body.is_empty());
                model.jobs.push((job.id, job.token));
            }
        }
        Call::Renew { job } => {
            let Some(&job) = model.jobs.get(job) else {
                return;
            };
            let renewed = block_on(engine.renew(job.0, job.1, 60 * SECOND)).unwrap();
            let held = model
                .holder(job)
                .filter(|kept| kept.state == EntryState::Running);
            assert_eq!(renewed == Ownership::Held, held.is_some());
            if let Some(kept) = held {
                kept.until = now + 60_000;
            }
        }
        Call::Settle { job, end } => {
            let Some(&job) = model.jobs.get(job) else {
                return;
            };
            let error = "made up".to_owned();
            let with = match end {
                Ending::Done => End::Done,
                Ending::Retry => End::Retry {
                    after: 20 * SECOND,
                    error,
                },
                Ending::Dead => End::Dead { error },
                Ending::Return => End::Return,
            };
            let settled = block_on(engine.settle(job.0, job.1, with)).unwrap();
            let held = model.holder(job);
            assert_eq!(settled == Ownership::Held, held.is_some());
            if let Some(kept) = held.filter(|kept| kept.state == EntryState::Running) {
                (kept.state, kept.until) = match end {
                    Ending::Done => (EntryState::Done, kept.forget_at),
                    Ending::Retry => (EntryState::Queued, now + 20_000),
                    Ending::Dead => (EntryState::Dead, 0),
                    Ending::Return => (EntryState::Queued, now),
                };
                if matches!(end, Ending::Return) {
                    kept.tries -= 1;
                }
            }
        }
        Call::Retry { state } => {
            let meant = |kept: &Kept| {
                let may = matches!(kept.state, EntryState::Queued | EntryState::Dead);
                may && state.is_none_or(|state| state == kept.state)
            };
            let mut which = Selection::all();
            which.state = state;
            let mut count = 0;
            for kept in model.entries.values_mut().filter(|kept| meant(kept)) {
                count += 1;
                let was = if kept.state == EntryState::Queued {
                    kept.until
                } else {
                    now
                };
                (kept.state, kept.until) = (EntryState::Queued, was.min(now));
                (kept.tries, kept.token) = (0, None);
            }
            let retry = Change::Retry { forgets_age: false };
            assert_eq!(block_on(engine.operate(which, retry)).unwrap(), count);
        }
        Call::DeadLetter => {
            let mut count = 0;
            let queued = |kept: &&mut Kept| kept.state == EntryState::Queued;
            for kept in model.entries.values_mut().filter(queued) {
                count += 1;
                (kept.state, kept.token) = (EntryState::Dead, None);
            }
            let reason = "made up".to_owned();
            let change = Change::DeadLetter { reason };
            let dead_lettered = block_on(engine.operate(Selection::all(), change));
            assert_eq!(dead_lettered.unwrap(), count);
        }
        Call::Purge { state } => {
            let meant = |kept: &Kept| {
                let may = matches!(kept.state, EntryState::Done | EntryState::Dead);
                may && state.is_none_or(|state| state == kept.state)
            };
            // Entries whose retention is over may or may not be deleted before they are purged.
            let before = model.entries.len();
            model.entries.retain(|_, kept| !meant(kept));
            let mut which = Selection::all();
            which.state = state;
            let purged = block_on(engine.operate(which, Change::Purge)).unwrap();
            assert!(purged >= (before - model.entries.len()) as u64);
        }
    }
}

fn compare(engine: &SqliteEngine, model: &Model, now: u64) {
    let listed = block_on(engine.list(Selection::all(), Page::first(1_000))).unwrap();
    let shown: Vec<_> = listed
        .iter()
        .filter(|listed| listed.state != EntryState::Done || listed.until > Some(now))
        .map(|listed| (listed.id.get(), listed.state, listed.until, listed.tries))
        .collect();
    let expected: Vec<_> = model
        .entries
        .iter()
        .filter(|(_, kept)| kept.state != EntryState::Done || kept.until > now)
        .map(|(&id, kept)| {
            let until = (kept.state != EntryState::Dead).then_some(kept.until);
            (id, kept.state, until, kept.tries)
        })
        .collect();
    assert_eq!(shown, expected);
    let stats = stats(engine);
    let count = |state| {
        model
            .entries
            .values()
            .filter(|kept| kept.state == state)
            .count() as u64
    };
    assert_eq!(stats.queued, count(EntryState::Queued));
    assert_eq!(stats.running, count(EntryState::Running));
    assert_eq!(stats.dead, count(EntryState::Dead));
    let retrying = |kept: &&Kept| kept.state == EntryState::Queued && kept.tries > 0;
    assert_eq!(
        stats.retrying,
        model.entries.values().filter(retrying).count() as u64
    );
}

#[test]
fn two_engines_of_one_file_do_as_the_model_says() {
    each_case(48, |case| {
        let calls = calls(case);
        println!("{calls:?}");
        check(calls);
    });
}
