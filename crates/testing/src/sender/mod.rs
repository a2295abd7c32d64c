//! The service's delivery engine, for tests and for real URLs.
//!
//! A [`Sender`] delivers as the service's specification says (*Events*, *Delivery and retry*), and reports the result of each
//! event. In tokio's paused time the 26 hours of a retry schedule pass in milliseconds. So a test can answer the important
//! question: **how does my receiver treat an event over all its attempts?**
//!
//! | rule | the service | setting |
//! |---|---|---|
//! | deliveries per subscription | event types, one data model if any | [`Subscription`] |
//! | a failed attempt | no answer within 5 s, no connection, any status but 2xx; redirects are not followed | [`SenderBuilder::schedule`] |
//! | waits, each from the failure on | 1 min, 5 min, 30 min, 2 h, 24 h | [`SenderBuilder::schedule`] |
//! | attempts | "5 in total", yet five waits: both readings | [`Reading`] |
//! | after the last attempt | the event is discarded | [`Disposition::Discarded`] |
//! | the timestamp of a retry | not specified: the time of the retry, or that of the first attempt | [`RetryTimestamps`] |
//! | duplicates | "may be delivered more than once" | [`NetworkFaults::duplicated`] |
//! | log of recent deliveries | id, type, time, status, retry count, payload | [`Sender::recent`] |
//! | test event | a button | [`Sender::send_test_event`] |
//!
//! # A handler that fails at random
//! Every event is handled once, or discarded after the last attempt. The test can name the discarded events:
//!
//! ```
//! use std::collections::HashMap;
//! use std::sync::{Arc, Mutex};
//!
//! use axum::{Router, extract::State, http::StatusCode, routing::post};
//! use hookgate_testing::sender::{Disposition, NetworkFaults, Sender, Subscription};
//! use hookgate_testing::{EventFactory, InProcess, TokioClock};
//! use hookgate::{Event, MemoryStore, Receiver, Secret, UnixSeconds};
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
//!     .store(MemoryStore::default().with_clock(clock))
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
//!     assert!(times == 1 || event.disposition == Disposition::Discarded, "lost: {event}\n{report}");
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
//! Each event has its own attempts and waits, so events can overtake each other: the service promises no order. On tokio's
//! current-thread runtime with paused time every test run is the same, and [`NetworkFaults`] depend on their seed only. A
//! report prints the seed.
//!
//! # Real time
//! Over a [`Transport`](crate::Transport) to a real server, time is real. [`SenderBuilder::speed`] then divides
//! **only the waits**. The sender's timeout of 5 s stays, timestamps come from the clock, and the receiver's own times do not
//! change (its budget of 4.5 s, leases of 30 s, its window of 300 s). So at any speed:
//!
//! - Retries that overlap with a run that is not finished get `503` more often than in production, where a minute lies
//!   between two attempts.
//! - A receiver that is killed during a run frees the event when its lease ends, 30 s later by default. In production the
//!   first retry comes after that. Above a speed of 2 it comes before, and the sender may discard an event that it would have
//!   delivered. Don't kill receivers at higher speeds, or shorten their leases by the same factor.
//! - [`RetryTimestamps::First`] makes retries stale only where they come 300 real seconds later.

mod attempt;
mod engine;
mod error;
mod faults;
mod meaning;
mod recent;
mod report;
mod settings;
mod subscription;
mod tamper;

pub use attempt::Attempted;
pub use engine::Sender;
pub use error::{SenderError, SenderErrorKind};
pub use faults::{NetworkFault, NetworkFaults};
pub use meaning::meaning;
pub use recent::RecentDelivery;
pub use report::{AttemptEnd, Disposition, SenderReport, SentAttempt, SentEvent};
pub use settings::{Reading, RetryTimestamps, SenderBuilder};
pub use subscription::Subscription;
pub use tamper::Tamper;
