//! Random sequences of calls.

use fastrand::Rng;
use hookgate_inbox::EntryState;

use super::model::EVENTS;

#[derive(Clone, Debug)]
pub(super) enum Call {
    Accept {
        event: usize,
        other_body: bool,
        hours: u64,
    },
    Lease {
        most: usize,
        max_tries: u32,
        serial: bool,
        except: bool,
    },
    Renew {
        job: usize,
    },
    Settle {
        job: usize,
        end: Ending,
    },
    Retry {
        state: Option<EntryState>,
    },
    DeadLetter,
    Purge {
        state: Option<EntryState>,
    },
    Pass {
        seconds: u64,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Ending {
    Done,
    Retry,
    Dead,
    Return,
}

pub(super) fn calls(case: &mut Rng) -> Vec<(bool, Call)> {
    let count = case.usize(1..60);
    (0..count).map(|_| (case.bool(), call(case))).collect()
}

/// Calls that change the inbox are three to six times as frequent as those of an operator.
fn call(case: &mut Rng) -> Call {
    match case.u32(..26) {
        0..6 => Call::Accept {
            event: case.usize(..EVENTS),
            other_body: case.u32(..10) == 0,
            hours: case.u64(1..4),
        },
        6..12 => Call::Lease {
            most: case.usize(..4),
            max_tries: case.u32(1..4),
            serial: case.bool(),
            except: case.bool(),
        },
        12..14 => Call::Renew {
            job: case.usize(..20),
        },
        14..20 => Call::Settle {
            job: case.usize(..20),
            end: [Ending::Done, Ending::Retry, Ending::Dead, Ending::Return][case.usize(..4)],
        },
        20 => Call::Retry { state: state(case) },
        21 => Call::DeadLetter,
        22 => Call::Purge { state: state(case) },
        _ => Call::Pass {
            seconds: [1, 10, 31, 3_600][case.usize(..4)],
        },
    }
}

fn state(case: &mut Rng) -> Option<EntryState> {
    let states = [
        EntryState::Queued,
        EntryState::Running,
        EntryState::Done,
        EntryState::Dead,
    ];
    states.get(case.usize(..5)).copied()
}
