//! The parts of a plan: a few events, their sender, their handler, the faults of the store and the
//! clocks.

use std::ops::Range;

use proptest::collection::vec;
use proptest::prelude::*;

/// When the sender tries, in milliseconds after the first attempt.
pub(super) const ATTEMPTS: [u64; 6] = [0, 60_000, 360_000, 2_160_000, 9_360_000, 95_760_000];
/// When it gives an attempt up.
pub(super) const SENDER_GIVES_UP: u64 = 5_000;
pub(super) const RUN_LIMIT: u64 = 600_000;

#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) store: Store,
    pub(super) lease: u64,
    pub(super) events: Vec<EventPlan>,
    /// The receiver's wall clock is moved by so many seconds.
    pub(super) wall_steps: Vec<(u64, i64)>,
    /// The store's monotonic clock jumps ahead by so many milliseconds: leases and retentions end
    /// early.
    pub(super) store_jumps: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Store {
    Memory,
    Moka,
}

#[derive(Clone, Debug)]
pub(super) struct EventPlan {
    pub(super) first_attempt: u64,
    /// Beside the sender's own attempts: when, and after how long it hangs up.
    pub(super) copies: Vec<(u64, u64)>,
    /// The action of each run; the last one holds for all later runs.
    pub(super) runs: Vec<HandlerAction>,
    pub(super) faults: Vec<StoreFault>,
}

/// The action of one run of the handler, after this many milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum HandlerAction {
    Succeeds(u64),
    Fails(u64),
    PanicsInCall,
    PanicsInPoll(u64),
    GivesUp(u64, HookAction),
}

/// The action of the dead-letter hook.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum HookAction {
    IsKept,
    Fails,
    Panics,
}

/// The `nth` call of this kind for the event meets a fault, and so do the next ones, `times` in
/// all.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoreFault {
    pub(super) call: Call,
    pub(super) nth: usize,
    pub(super) times: usize,
    pub(super) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Call {
    Claim,
    Renew,
    Commit,
    Release,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    /// No effect, an error.
    Fails,
    /// It takes effect, and answers with an error.
    LosesReply,
    /// It takes effect at once and answers later.
    RepliesLate(u64),
    /// It takes effect later, unless its caller has gone by then.
    ActsLate(u64),
    /// It takes effect later, whether its caller is still there or not.
    Straggles(u64),
    /// No effect, no answer.
    Hangs,
    /// It takes effect and never answers.
    HangsAfterEffect,
}

pub(super) fn plans() -> impl Strategy<Value = Plan> {
    let store = prop_oneof![Just(Store::Memory), Just(Store::Moka)];
    // The shorter ones are renewed within the budget; the shortest may end before the store has
    // answered.
    let lease = prop_oneof![6 => Just(30_000_u64), 2 => Just(1_000), 1 => Just(300)];
    let wall_step = prop_oneof![
        -400..400_i64,
        Just(-301_i64),
        Just(301),
        Just(-86_400),
        Just(86_400)
    ];
    let jump = prop_oneof![8 => 20_000..40_000_u64, 1 => Just(49 * 3_600_000_u64)];
    (
        store,
        lease,
        vec(event(), 1..4),
        rarely(vec((moment(), wall_step), 0..4)),
        rarely(vec((moment(), jump), 0..4)),
    )
        .prop_map(|(store, lease, events, wall_steps, store_jumps)| Plan {
            store,
            lease,
            events,
            wall_steps,
            store_jumps,
        })
}

fn event() -> impl Strategy<Value = EventPlan> {
    (
        0..3_000_u64,
        vec((moment(), hang_up()), 0..7),
        rarely(burst()),
        vec(does(), 1..6),
        rarely(vec(store_fault(), 1..5)),
    )
        .prop_map(|(first_attempt, copies, burst, runs, faults)| EventPlan {
            first_attempt,
            copies: [copies, burst].concat(),
            runs,
            faults,
        })
}

/// An empty list, more often than not: the rules without faults are stricter than those with
/// faults.
fn rarely<T: Clone + std::fmt::Debug>(
    list: impl Strategy<Value = Vec<T>>,
) -> impl Strategy<Value = Vec<T>> {
    (0..5_u8, list).prop_map(|(dice, list)| if dice < 3 { Vec::new() } else { list })
}

/// Near the first attempt, near any attempt, or whenever.
fn moment() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0..8_000_u64,
        4 => (0..ATTEMPTS.len(), 0..12_000_u64).prop_map(|(nth, later)| (ATTEMPTS[nth] + later).saturating_sub(2_000)),
        1 => 0..100_000_000_u64,
    ]
}

/// Many copies at about the same time.
fn burst() -> impl Strategy<Value = Vec<(u64, u64)>> {
    (moment(), vec((0..1_000_u64, hang_up()), 5..10)).prop_map(|(at, copies)| {
        copies
            .into_iter()
            .map(|(later, hang_up)| (at + later, hang_up))
            .collect()
    })
}

fn hang_up() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(SENDER_GIVES_UP), 1 => Just(0_u64), 2 => 0..SENDER_GIVES_UP]
}

fn does() -> impl Strategy<Value = HandlerAction> {
    let letter = prop_oneof![
        Just(HookAction::IsKept),
        Just(HookAction::Fails),
        Just(HookAction::Panics)
    ];
    prop_oneof![
        4 => lasting().prop_map(HandlerAction::Succeeds),
        3 => lasting().prop_map(HandlerAction::Fails),
        1 => Just(HandlerAction::PanicsInCall),
        1 => lasting().prop_map(HandlerAction::PanicsInPoll),
        1 => (lasting(), letter).prop_map(|(millis, letter)| HandlerAction::GivesUp(millis, letter)),
    ]
}

fn lasting() -> impl Strategy<Value = u64> {
    const NEAR_THE_BUDGET: Range<u64> = 4_495..4_505;
    prop_oneof![
        2 => Just(0_u64),
        3 => 0..3_000_u64,
        2 => 3_000..8_000_u64,
        1 => NEAR_THE_BUDGET,
        2 => 8_000..100_000_u64,
        1 => RUN_LIMIT - 5_000..RUN_LIMIT + 5_000,
    ]
}

fn store_fault() -> impl Strategy<Value = StoreFault> {
    let call = prop_oneof![
        3 => Just(Call::Claim),
        1 => Just(Call::Renew),
        2 => Just(Call::Commit),
        2 => Just(Call::Release)
    ];
    let slow = || prop_oneof![0..1_500_u64, 0..40_000_u64];
    let fault = prop_oneof![
        Just(Fault::Fails),
        Just(Fault::LosesReply),
        slow().prop_map(Fault::RepliesLate),
        slow().prop_map(Fault::ActsLate),
        slow().prop_map(Fault::Straggles),
        Just(Fault::Hangs),
        Just(Fault::HangsAfterEffect),
    ];
    (call, 0..4_usize, 1..4_usize, fault).prop_map(|(call, nth, times, fault)| StoreFault {
        call,
        nth,
        times,
        fault,
    })
}
