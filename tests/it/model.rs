//! Whatever the order of copies, failures, panics, hang-ups, late answers, lost leases and clock
//! steps: each event is committed once, and none is lost while the sender still retries.
//!
//! A [`Plan`](plan::Plan) is a list of all that happens; it is played in virtual time, on one
//! thread, against the real layer and a real store behind planned faults. The rules are checked
//! where things happen:
//!
//! - [`ledger`]: the store's contract as plain code. Each call that takes effect must be answered
//!   as the ledger answers it.
//! - [`world`]: the results that handler, requests and hooks may see, given the ledger; and the
//!   rules for the end.
//!
//! `PROPTEST_CASES` sets the number of plans. A plan that fails is shrunk and kept in
//! `tests/it/model.regressions`.

#![allow(clippy::unwrap_used)]

mod clock;
mod ledger;
mod plan;
mod run;
mod store;
mod world;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hookgate::{
    DeadLetter, DedupeStore, Delivery, MemoryStore, Outcome, Receiver, Scheme, Secret,
    clock::UnixSeconds,
    dedupe::RetrySchedule,
    layer::{Answer, ResponseBody, VerifiedBody},
    verify::{Timestamp, sign},
};
use http::{Request, Response, StatusCode};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt, service_fn};

use self::clock::{StoreClock, Wall};
use self::plan::{
    ATTEMPTS, Call, EventPlan, Fault, HandlerAction, HookAction, Plan, RUN_LIMIT, SENDER_GIVES_UP,
    Store, StoreFault, plans,
};
use self::run::RunEnd;
use self::store::WatchedStore;
use self::world::{MAX_WAITING, World, event_id};
use crate::harness::SECRET;

type App = BoxCloneService<Request<String>, Response<ResponseBody<()>>, Infallible>;

#[test]
fn each_event_is_committed_once_and_none_is_lost() {
    play(Scheme::WORKSPACE, 400);
}

#[test]
fn each_event_of_stripe_is_committed_once_and_none_is_lost() {
    play(Scheme::STRIPE, 100);
}

#[test]
fn each_event_of_standard_webhooks_is_committed_once_and_none_is_lost() {
    play(Scheme::STANDARD_WEBHOOKS, 100);
}

fn play(scheme: Scheme, cases: u32) {
    let defaults = Config::default();
    let mut runner = TestRunner::new(Config {
        cases: if defaults.cases == 256 {
            cases
        } else {
            defaults.cases
        },
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(
            "it/model.regressions",
        ))),
        ..defaults
    });
    let played = runner.run(&plans(), |plan| {
        let violations = Play::begin_and_end_as(scheme, plan).violations();
        if violations.is_empty() {
            return Ok(());
        }
        Err(TestCaseError::fail(violations.join("\n")))
    });
    if let Err(failure) = played {
        panic!("{failure}");
    }
}

/// A waiting copy that hung up while the store hung kept its place for as long as the call was
/// allowed.
#[test]
fn a_copy_that_hangs_up_leaves_its_place_even_in_a_call_of_the_store() {
    let mut copies = vec![(1, 30)];
    copies.extend([(4_510, SENDER_GIVES_UP); MAX_WAITING.1]);
    let plan = Plan {
        store: Store::Memory,
        lease: 30_000,
        events: vec![EventPlan {
            first_attempt: 0,
            copies,
            runs: vec![HandlerAction::Succeeds(8_000)],
            faults: vec![StoreFault {
                call: Call::Claim,
                nth: 2,
                times: 1,
                fault: Fault::Hangs,
            }],
        }],
        wall_steps: Vec::new(),
        store_jumps: Vec::new(),
    };
    let violations = Play::begin_and_end(plan).violations();
    assert!(violations.is_empty(), "{violations:#?}");
}

/// The first copy's claim is granted at 812, and its answer arrives at 1,322. In between the
/// store's clock jumps by nearly a lease, another copy claims at 1,321, and has handled the event.
/// By the receiver's clock the first claim holds.
#[test]
fn a_jump_of_the_stores_clock_during_a_claim_is_not_a_violation() {
    let plan = |store_jumps| Plan {
        store: Store::Memory,
        lease: 30_000,
        events: vec![EventPlan {
            first_attempt: 846,
            copies: vec![(1_146, 175), (812, 510)],
            runs: vec![HandlerAction::Succeeds(0)],
            faults: vec![StoreFault {
                call: Call::Claim,
                nth: 0,
                times: 1,
                fault: Fault::RepliesLate(510),
            }],
        }],
        wall_steps: Vec::new(),
        store_jumps,
    };
    for jumps in [vec![(812, 29_491)], Vec::new()] {
        let violations = Play::begin_and_end(plan(jumps)).violations();
        assert!(violations.is_empty(), "{violations:#?}");
    }
}

/// Without a jump there must be no run: the lease is shorter than the store takes to answer the
/// claim.
#[test]
fn a_claim_that_ends_before_its_answer_arrives_begins_no_run() {
    for (lease, late) in [(300, 300), (300, 900), (1_000, 1_000)] {
        let plan = Plan {
            store: Store::Memory,
            lease,
            events: vec![EventPlan {
                first_attempt: 0,
                copies: vec![(200, SENDER_GIVES_UP), (650, SENDER_GIVES_UP)],
                runs: vec![HandlerAction::Succeeds(50)],
                faults: vec![StoreFault {
                    call: Call::Claim,
                    nth: 0,
                    times: 1,
                    fault: Fault::RepliesLate(late),
                }],
            }],
            wall_steps: Vec::new(),
            store_jumps: Vec::new(),
        };
        let violations = Play::begin_and_end(plan).violations();
        assert!(violations.is_empty(), "{lease}, {late}: {violations:#?}");
    }
}

/// The rules above prove little if nothing happens. So this counts the events of a few hundred
/// plans, always the same ones.
#[test]
fn the_plans_reach_what_they_are_about() {
    let mut runner = TestRunner::deterministic();
    let mut happened = BTreeMap::<String, usize>::new();
    for _ in 0..200 {
        let plan = plans().new_tree(&mut runner).unwrap().current();
        let play = Play::begin_and_end(plan);
        assert!(play.violations().is_empty(), "{:#?}", play.violations());
        for what in play.happened() {
            *happened.entry(what).or_default() += 1;
        }
    }
    for expected in [
        "answered handled",
        "answered dead_lettered",
        "answered replayed",
        "answered runs_on",
        "answered handler_status",
        "answered panicked",
        "answered dead_letter_failed",
        "answered handled_claim_lost",
        "answered handled_commit_failed",
        "answered handled_commit_too_slow",
        "answered not_authentic",
        "answered still_running",
        "answered store_unavailable",
        "answered store_too_slow",
        "settled handled",
        "settled run_limit",
        "settled handled_commit_too_slow",
        "a claim or record was lost",
        "two runs at a time",
        "handled in a later attempt",
        "given up by the sender",
    ] {
        assert!(
            happened.contains_key(expected),
            "never: {expected}; but {happened:#?}"
        );
    }
}

struct Play {
    plan: Plan,
    world: Arc<World>,
    receiver: Receiver,
    app: App,
}

impl Play {
    /// Plays a plan from its first delivery to the end of its last run.
    fn begin_and_end(plan: Plan) -> Arc<World> {
        Self::begin_and_end_as(Scheme::WORKSPACE, plan)
    }

    /// The same, with deliveries that another sender has signed.
    fn begin_and_end_as(scheme: Scheme, plan: Plan) -> Arc<World> {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap()
            .block_on(async { Self::begin(scheme, plan).end().await })
    }

    fn begin(scheme: Scheme, plan: Plan) -> Self {
        let world = World::new(&plan.events, scheme);
        let clock: Arc<dyn hookgate::clock::Clock> = Arc::new(StoreClock(Arc::clone(&world)));
        let inner: Arc<dyn DedupeStore> = match plan.store {
            Store::Memory => Arc::new(MemoryStore::new(100).with_clock(clock)),
            #[cfg(feature = "moka")]
            Store::Moka => Arc::new(hookgate::dedupe::MokaStore::new(100).with_clock(clock)),
            #[cfg(not(feature = "moka"))]
            Store::Moka => Arc::new(MemoryStore::new(100).with_clock(clock)),
        };
        let store = WatchedStore {
            inner,
            world: Arc::clone(&world),
        };
        let [settled, answered, letters, handling] = [(); 4].map(|()| Arc::clone(&world));
        let receiver = Receiver::builder()
            .scheme(scheme)
            // The sender's attempts are the plan's own.
            .schedule(RetrySchedule::default())
            .secret(secret(scheme))
            .store(store)
            .clock(Wall(Arc::clone(&world)))
            .lease(Duration::from_millis(plan.lease))
            .run_limit(Duration::from_millis(RUN_LIMIT))
            .on_settled(move |run| settled.settled(run))
            .on_answer(move |answer| answered.told(answer))
            .on_dead_letter(move |delivery, letter| {
                let kept = keep(&letters, &delivery, letter.reason());
                async { kept }
            })
            .build()
            .unwrap();
        let handler = service_fn(move |request| handle(&handling, &request));
        let app = BoxCloneService::new(receiver.layer().layer(handler));
        Self {
            plan,
            world,
            receiver,
            app,
        }
    }

    async fn end(self) -> Arc<World> {
        let mut tasks = JoinSet::new();
        for (event, plan) in self.plan.events.iter().enumerate() {
            let sender = self.sender(event, plan.first_attempt);
            tasks.spawn(sender);
            for &(at, hang_up) in &plan.copies {
                let (app, world) = (self.app.clone(), Arc::clone(&self.world));
                tasks.spawn(async move {
                    sleep(Duration::from_millis(at)).await;
                    deliver(app, world, event, hang_up).await;
                });
            }
        }
        for &(at, seconds) in &self.plan.wall_steps {
            let world = Arc::clone(&self.world);
            tasks.spawn(async move {
                sleep(Duration::from_millis(at)).await;
                world.skew.fetch_add(seconds, Ordering::SeqCst);
            });
        }
        for &(at, millis) in &self.plan.store_jumps {
            let world = Arc::clone(&self.world);
            tasks.spawn(async move {
                sleep(Duration::from_millis(at)).await;
                world.jumps.fetch_add(1, Ordering::SeqCst);
                world.jumped.fetch_add(millis, Ordering::SeqCst);
            });
        }
        while let Some(task) = tasks.join_next().await {
            if let Err(panic) = task {
                self.world
                    .violation(format!("outside the handler: {panic}"));
            }
        }
        self.all_runs_end().await;
        self.world.check_the_end();
        self.a_last_copy_is_taken().await;
        self.all_places_are_free().await;
        self.world.check_the_end();
        self.world
    }

    /// The service: tries until it gets a 2xx, hangs up after 5 s.
    fn sender(&self, event: usize, first_attempt: u64) -> impl Future<Output = ()> + Send + use<> {
        let (app, world) = (self.app.clone(), Arc::clone(&self.world));
        async move {
            let mut passed = 0;
            for attempt in ATTEMPTS {
                let due = first_attempt + attempt;
                sleep(Duration::from_millis(due - passed)).await;
                passed = due;
                let began = tokio::time::Instant::now();
                let status = deliver(app.clone(), Arc::clone(&world), event, SENDER_GIVES_UP).await;
                if status.is_some_and(|status| status.is_success()) {
                    if attempt > 0 {
                        world.note("handled in a later attempt");
                    }
                    return;
                }
                passed += u64::try_from(began.elapsed().as_millis()).unwrap();
            }
            world.note("given up by the sender");
        }
    }

    async fn all_runs_end(&self) {
        // The longest run, and the slowest calls of the store after it.
        sleep(Duration::from_millis(RUN_LIMIT) + Duration::from_secs(150)).await;
        let runs = self.receiver.runs();
        if runs != 0 {
            self.world.violation(format!("{runs} runs have no end"));
        }
    }

    /// With all faults over, a copy of each event is a replay if it is done, and handled if it is
    /// not.
    async fn a_last_copy_is_taken(&self) {
        self.world.calm();
        for event in 0..self.plan.events.len() {
            for _ in 0..2 {
                let (app, world) = (self.app.clone(), Arc::clone(&self.world));
                let status = deliver(app, world, event, SENDER_GIVES_UP).await;
                if !status.is_some_and(|status| status.is_success()) {
                    let violation = format!("a last copy of event {event} was answered {status:?}");
                    self.world.violation(violation);
                }
            }
        }
    }

    /// As many copies can wait as at the beginning.
    async fn all_places_are_free(&self) {
        let mut tasks = JoinSet::new();
        let (in_all, for_one) = MAX_WAITING;
        for event in 0..in_all / for_one {
            for _ in 0..=for_one {
                let id = format!("slow_{event}");
                tasks.spawn(self.app.clone().oneshot(request(&self.world, &id)));
            }
        }
        while let Some(answer) = tasks.join_next().await {
            let response = answer.unwrap().unwrap();
            let outcome = outcome(&response);
            // The hook got these as well.
            self.world.had_outcome(outcome);
            if !response.status().is_success() {
                self.world
                    .violation(format!("a place to wait is missing: {outcome:?}"));
            }
        }
    }
}

fn request(world: &World, id: &str) -> Request<String> {
    let body = format!(r#"{{"id":"{id}","type":"row.deleted"}}"#);
    let (scheme, mut request) = (world.scheme, Request::post("/webhooks"));
    let timestamp = Timestamp::at(UnixSeconds::new(world.true_time())).unwrap();
    let headers = sign(&scheme, &secret(scheme), &timestamp, id, body.as_bytes());
    for (name, value) in headers.unwrap() {
        request = request.header(name, value);
    }
    request.body(body).unwrap()
}

fn secret(scheme: Scheme) -> Secret {
    let is_bytes = scheme == Scheme::STANDARD_WEBHOOKS;
    let text = match is_bytes {
        true => "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        false => SECRET,
    };
    Secret::new(text).unwrap()
}

fn outcome(response: &Response<ResponseBody<()>>) -> Outcome {
    response.extensions().get::<Answer>().unwrap().outcome
}

/// One delivery, given up after `hang_up` milliseconds. `None` where no answer came.
async fn deliver(app: App, world: Arc<World>, event: usize, hang_up: u64) -> Option<StatusCode> {
    let request = request(&world, &event_id(event));
    // Nothing else runs between this look at the ledger and the request's own.
    let arrival = world.arrives(event);
    let Ok(answer) = timeout(Duration::from_millis(hang_up), app.oneshot(request)).await else {
        world.hung_up(&arrival);
        return None;
    };
    let response = match answer {
        Ok(response) => response,
        Err(never) => match never {},
    };
    world.answered(&arrival, response.status().as_u16(), outcome(&response));
    Some(response.status())
}

/// The handler: does for each run as planned.
fn handle(
    world: &Arc<World>,
    request: &Request<VerifiedBody>,
) -> impl Future<Output = Result<Response<()>, Infallible>> + Send + use<> {
    let delivery = request.extensions().get::<Delivery>().unwrap();
    let begun = world
        .event_of(delivery.key())
        .map(|event| world.run_begins(event));
    if let Some((run, HandlerAction::PanicsInCall)) = begun {
        run.ends(RunEnd::Panicked);
        // As a panic, without the output of the panic hook.
        resume_unwind(Box::new("made-up panic in the call"));
    }
    async move {
        let Some((run, does)) = begun else {
            sleep(Duration::from_secs(1)).await;
            return Ok(answer(StatusCode::NO_CONTENT));
        };
        match does {
            HandlerAction::Succeeds(millis) => {
                last(millis).await;
                run.ends(RunEnd::Succeeded);
                Ok(answer(StatusCode::NO_CONTENT))
            }
            HandlerAction::Fails(millis) => {
                last(millis).await;
                run.ends(RunEnd::Failed);
                Ok(answer(StatusCode::BAD_GATEWAY))
            }
            HandlerAction::PanicsInCall => unreachable!(),
            HandlerAction::PanicsInPoll(millis) => {
                last(millis).await;
                run.ends(RunEnd::Panicked);
                resume_unwind(Box::new("made-up panic in a poll"))
            }
            HandlerAction::GivesUp(millis, letter) => {
                last(millis).await;
                let reason = format!("{} {letter:?}", run.hands_over());
                Ok(DeadLetter::new(reason).mark(Response::new(())))
            }
        }
    }
}

async fn last(millis: u64) {
    if millis > 0 {
        sleep(Duration::from_millis(millis)).await;
    }
}

fn answer(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}

/// The dead-letter hook.
fn keep(
    world: &World,
    delivery: &Delivery,
    reason: &str,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let event = world.event_of(delivery.key()).unwrap();
    let (run, does) = reason.split_once(' ').unwrap();
    let ends = |end| world.run_ends(event, run.parse().unwrap(), end);
    if does == format!("{:?}", HookAction::IsKept) {
        ends(RunEnd::LetterKept);
        return Ok(());
    }
    ends(RunEnd::LetterNotKept);
    if does == format!("{:?}", HookAction::Panics) {
        resume_unwind(Box::new("made-up panic in the hook"));
    }
    Err("made-up failure of the hook".into())
}
