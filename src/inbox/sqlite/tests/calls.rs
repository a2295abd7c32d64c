//! Random sequences of calls.

use proptest::prelude::*;

use super::model::EVENTS;
use crate::inbox::engine::EntryState;

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
    Bury,
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

pub(super) fn calls() -> impl Strategy<Value = Vec<(bool, Call)>> {
    let state = || {
        prop_oneof![
            Just(None),
            Just(Some(EntryState::Queued)),
            Just(Some(EntryState::Running)),
            Just(Some(EntryState::Done)),
            Just(Some(EntryState::Dead)),
        ]
    };
    let ending = prop_oneof![
        Just(Ending::Done),
        Just(Ending::Retry),
        Just(Ending::Dead),
        Just(Ending::Return),
    ];
    let call = prop_oneof![
        6 => (0..EVENTS, prop::bool::weighted(0.1), 1_u64..4)
            .prop_map(|(event, other_body, hours)| Call::Accept { event, other_body, hours }),
        6 => (0_usize..4, 1_u32..4, any::<bool>(), any::<bool>())
            .prop_map(|(most, max_tries, serial, except)| Call::Lease { most, max_tries, serial, except }),
        2 => (0_usize..20).prop_map(|job| Call::Renew { job }),
        6 => (0_usize..20, ending).prop_map(|(job, end)| Call::Settle { job, end }),
        1 => state().prop_map(|state| Call::Retry { state }),
        1 => Just(Call::Bury),
        1 => state().prop_map(|state| Call::Purge { state }),
        3 => prop_oneof![Just(1_u64), Just(10), Just(31), Just(3_600)]
            .prop_map(|seconds| Call::Pass { seconds }),
    ];
    prop::collection::vec((any::<bool>(), call), 1..60)
}
