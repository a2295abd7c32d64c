//! What the service does to receivers: its delivery engine, in a test or at a URL.
//!
//! A [`Sender`] delivers as the service's specification has it (*Events*, *Delivery and retry*), and says what became of each event.
//! In tokio's paused time the 26 hours of a retry schedule pass in milliseconds, so that a test can ask the question that matters: **what
//! does my receiver do with an event over all its attempts?**
//!
//! | | the service | setting |
//! |---|---|---|
//! | who is sent what | event types, one data model if any | [`Subscription`] |
//! | an attempt fails | no answer within 5 s, no connection, any status but 2xx; redirects are not followed | [`SenderBuilder::schedule`] |
//! | waits, each from the failure on | 1 min, 5 min, 30 min, 2 h, 24 h | [`SenderBuilder::schedule`] |
//! | attempts | "5 in total", yet five waits: both readings | [`Reading`] |
//! | then | the event is discarded | [`Fate::Discarded`] |
//! | the timestamp of a retry | not specified: its own, or the first one's | [`RetryTimestamps`] |
//! | copies | "may be delivered more than once" | [`NetworkFaults::duplicated`] |
//! | log of recent deliveries | id, type, time, status, retry count, payload | [`Sender::recent`] |
//! | test event | a button | [`Sender::send_test_event`] |
//!
//! # A handler that fails at random
//! Every event is handled once, or discarded after the last attempt, and the test can name which:
//!
#![cfg_attr(feature = "axum", doc = "```")]
#![cfg_attr(not(feature = "axum"), doc = "```ignore")]
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use axum::{Router, extract::State, http::StatusCode, routing::post};
//! use hookgate::testing::sender::{Fate, NetworkFaults, Sender, Subscription};
//! use hookgate::testing::{EventFactory, InProcess, TokioClock};
//! use hookgate::{Event, LocalStore, Receiver, Secret, UnixSeconds};
//!
//! #[derive(Clone)]
//! struct Handled {
//!     times: Arc<Mutex<HashMap<String, u32>>>,
//!     luck: Arc<Mutex<fastrand::Rng>>,
//! }
//!
//! /// Fails at random, 30 % of the time.
//! async fn on_event(State(handled): State<Handled>, event: Event) -> StatusCode {
//!     if handled.luck.lock().unwrap().f64() < 0.3 {
//!         return StatusCode::INTERNAL_SERVER_ERROR;
//!     }
//!     *handled.times.lock().unwrap().entry(event.id.to_string()).or_default() += 1;
//!     StatusCode::NO_CONTENT
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! // In a test of yours: #[tokio::test(start_paused = true)]
//! let clock = TokioClock::starting_at(UnixSeconds::new(1_795_253_400));
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let receiver = Receiver::builder()
//!     .secret(secret.clone())
//!     .store(LocalStore::default().with_clock(clock))
//!     .clock(clock)
//!     .build()?;
//! let handled = Handled {
//!     times: Arc::default(),
//!     luck: Arc::new(Mutex::new(fastrand::Rng::with_seed(7))),
//! };
//! let app: Router = Router::new()
//!     .route("/webhooks", post(on_event).layer(receiver.layer()))
//!     .with_state(handled.clone());
//!
//! let mut sender = Sender::builder()
//!     .subscription(Subscription::new("wh_1", "/webhooks", secret, InProcess::new(app))?)
//!     .clock(clock)
//!     .faults(NetworkFaults::seeded(7).answers_lost(0.1).duplicated(0.1).refused(0.1))
//!     .build();
//! let events = EventFactory::new().with_clock(clock);
//! for _ in 0..500 {
//!     sender.emit(events.row_created())?;
//! }
//! let report = sender.settle().await; // hours later
//!
//! let handled = handled.times.lock().unwrap();
//! for event in report.events() {
//!     let times = handled.get(&event.id).copied().unwrap_or_default();
//!     assert!(times <= 1, "handled twice: {event}\n{report}");
//!     assert!(times == 1 || event.fate == Fate::Discarded, "lost: {event}\n{report}");
//! }
//! let given_up: Vec<_> = report.discarded().map(|event| &event.id).collect();
//! println!("given up: {given_up:?}");
//! # assert!(given_up.len() < 30 && report.delivered().count() > 470, "{report}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Order and repetition
//! Each event runs its own course: events overtake each other, as the service promises no order. On tokio's current-thread runtime with
//! paused time a run is the same each time, and [`NetworkFaults`] are drawn by their seed alone; a report prints it.
//!
//! # Real time
//! Over a [`Transport`](crate::testing::Transport) to a real server, time is real. [`SenderBuilder::speed`] then divides the **waits, and
//! nothing else**: the patience of 5 s stays, timestamps are those of the clock, and the receiver's own times (its budget of 4.5 s, leases
//! of 30 s, its window of 300 s) know nothing of it. So at any speed:
//!
//! - Retries whose attempts overlap with a run that still goes on meet `503` more often than in truth, where a minute lies between.
//! - A receiver that is killed amid a run frees the event when its lease ends, 30 s later by default. In truth the first retry comes after
//!   that; above a speed of 2 it comes before, and the sender may discard what it would have delivered. Don't kill receivers at higher speeds,
//!   or shorten their leases by as much.
//! - [`RetryTimestamps::First`] makes retries stale only where they come 300 real seconds later.

mod attempt;
mod engine;
mod faults;
mod meaning;
mod recent;
mod report;
mod settings;
mod subscription;
mod tamper;

pub use engine::Sender;
pub use faults::{NetworkFault, NetworkFaults};
pub use meaning::meaning;
pub use recent::RecentDelivery;
pub use report::{AttemptEnd, Fate, SenderReport, SentAttempt, SentEvent};
pub use settings::{Reading, RetryTimestamps, SenderBuilder};
pub use subscription::Subscription;
pub use tamper::Tamper;
