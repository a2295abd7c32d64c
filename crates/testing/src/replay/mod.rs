//! Replay: a log of deliveries becomes a test.
//!
//! A [delivery log](super::log) holds the deliveries of a receiver, byte for byte. A replay of it in a test answers a question
//! that no unit test of a handler can answer: does this receiver, with this store, handle each of these events once, whichever
//! faults occur?
//!
//! ```
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate_testing::{Faults, Harness, Replay};
//! use hookgate::{Event, MemoryStore, Receiver, Secret};
//! use hookgate_testing::replay::ReplayError;
//!
//! async fn on_event(event: Event) -> StatusCode {
//!     println!("{}", event.id);
//!     StatusCode::NO_CONTENT
//! }
//!
//! /// The app: as in production, with `harness.layer(…)` in place of `receiver.layer()`.
//! fn app(harness: &Harness) -> Result<Router, ReplayError> {
//!     let store = MemoryStore::default().with_clock(harness.clock());
//!     let guard = harness.layer(Receiver::builder().store(store))?;
//!     Ok(Router::new().route("/webhooks", post(on_event).layer(guard)))
//! }
//!
//! # fn open(_: &str) -> Result<hookgate_testing::DeliveryLog, Box<dyn std::error::Error>> {
//! #     use hookgate::record::LoggedDelivery;
//! #     use hookgate_testing::Signer;
//! #     let logged = |number: i64| {
//! #         let at = hookgate::UnixSeconds::new(1_763_690_000 + 20 * number);
//! #         let event = hookgate_testing::EventFactory::seeded(number as u64).row_created();
//! #         let signer = Signer::new(Secret::new("whsec_made_up_for_this_example").unwrap());
//! #         let mut logged = LoggedDelivery::new(at, signer.at(at).headers(event.body()), event.body());
//! #         logged.target = "/webhooks".into();
//! #         logged
//! #     };
//! #     Ok((0..5).map(logged).collect())
//! # }
//! # /*
//! #[tokio::test(start_paused = true)]
//! # */
//! async fn each_event_is_handled_once() -> Result<(), Box<dyn std::error::Error>> {
//!     # /*
//!     let log = DeliveryLog::open("tests/deliveries.jsonl")?;
//!     # */
//!     # let log = open("tests/deliveries.jsonl")?;
//!     let report = Replay::of(log)
//!         .secret(Secret::new("whsec_made_up_for_this_example")?)
//!         .with(Faults::seeded(7).duplicate().reorder().sender_hangs_up())
//!         .against(|harness| app(&harness))
//!         .await?;
//!     assert!(report.each_event_committed_once(), "{report}");
//!     Ok(())
//! }
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?
//! #     .block_on(each_event_is_handled_once())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Observations
//!
//! A status is only the receiver's own report. The [report](Report) uses three other sources. A **probe** before your store sees
//! each claim and each commit. A **fault layer** directly before your handler counts its runs and records how they ended. Each
//! delivery of the log is verified before the replay begins: one that was never authentic must stay refused. An event is
//! committed *once* when one run of the handler ended well and one commit was confirmed; *never* when one of them is missing,
//! even if the sender received 2xx; *twice* when there was more than one of either.
//!
//! A receiver [without deduplication](hookgate::ReceiverBuilder::without_deduplication) makes no visible commit, and is an error.
//!
//! # Time and signature
//!
//! | | clock of the receiver | signature | against an app | through a transport |
//! |---|---|---|---|---|
//! | [`Replay::of`] | shows each delivery's `received_at` | as recorded | yes | no |
//! | [`resigned`](Replay::resigned) | the same | for the moment at which it goes out | yes | yes, by the machine's clock |
//! | [`raw`](Replay::raw) | any other time | as recorded | yes | yes |
//!
//! The harness gives its clock to the receiver when the receiver is built. There is no other way to set this clock: no header
//! and no extension of a request can set the time, in a replay or elsewhere. So a log can be replayed at its recorded time only
//! in process. A delivery that goes [through a transport](Replay::through), for example to a URL, is signed again or refused for
//! its age, and that report says only the *answers*.
//!
//! [Redacted](hookgate::record::Redaction) deliveries have lost the bytes that were signed. An error names them until you call
//! [`resign_unverifiable`](Replay::resign_unverifiable). A delivery that was never authentic is never signed.
//!
//! # Time
//!
//! Tokio's time has to be paused, `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`). Recorded gaps and the
//! sender's day of retries then pass in milliseconds, and timers, leases and ages agree with each other. [`Harness::clock`]
//! gives this time to your stores. A store that uses the machine's clock sees leases that never end.
//!
//! **Paused time and real I/O:** when every task waits, tokio moves its clock forward to the next timer. A task that waits for a
//! socket, a thread or a database also counts as waiting, so its time-out ends before the answer can arrive. Replay an app that
//! does real I/O with [`in_real_time`](Replay::in_real_time): recorded gaps then last as long as recorded, up to a limit that
//! you set.
//!
//! # Faults
//!
//! A seed decides on which deliveries and events the [`Faults`] fall. Everything is chosen before the first delivery is sent:
//! the same seed gives the same replay. The report ends with the expression that repeats it. A fault of the handler takes the
//! handler's place, before the handler is called, so that a failed run has done nothing.
//!
//! After a failed attempt the sender sends a redelivery, after the waits of its [schedule](Replay::schedule). Only with
//! redeliveries can a test prove that no event was lost. Each retry gets a new signature, because the recorded signature is
//! stale after 300 s. With [`retries_keep_their_signature`](Replay::retries_keep_their_signature) it keeps the recorded one, and
//! the report shows the events that are lost because of that. Where the log holds a later delivery of the event, that delivery
//! is the retry. Copies and forged deliveries are not tried again. An event whose faults leave it no attempt is discarded, as
//! the sender would discard it, and counts as *never*.
//!
//! # Processes
//!
//! With [`Faults::restarts`] the closure is called again for a new app. All work of the old app ends as in a killed process:
//! handlers are dropped where they wait, no call reaches a store or a hook any more, requests get no answer. A task that your
//! handler has spawned by itself can't be reached, and continues.
//!
//! A [`MemoryStore`](hookgate::MemoryStore) made in the closure loses its records with its process. The report then says *twice*,
//! because the event is really handled twice. Make a store that outlives processes outside the closure, on [`Replay::clock`]:
//!
//! ```
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::record::LoggedDelivery;
//! use hookgate_testing::{DeliveryLog, Faults, Replay, Signer};
//! use hookgate::{Delivery, MemoryStore, Receiver, Secret, UnixSeconds};
//! use hookgate_testing::replay::ReplayError;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let at = UnixSeconds::new(1_763_690_000);
//! let body = r#"{"id":"evt_1","type":"page.created"}"#;
//! let headers = Signer::new(secret.clone()).at(at).headers(body);
//! let log: DeliveryLog = [LoggedDelivery::new(at, headers, body)].into_iter().collect();
//!
//! let replay = Replay::of(log).secret(secret).with(Faults::seeded(1).restarts(1).duplicate());
//! let store = MemoryStore::default().with_clock(replay.clock()); // in place of your own, in a database
//! let report = replay
//!     .against(|harness| {
//!         let guard = harness.layer(Receiver::builder().store(store.clone()))?;
//!         let handler = async |_: Delivery| StatusCode::NO_CONTENT;
//!         Ok::<_, ReplayError>(Router::new().route("/", post(handler).layer(guard)))
//!     })
//!     .await?;
//! assert!(report.each_event_committed_once(), "{report}");
//! assert_eq!(report.processes, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Into an inbox
//!
//! An [`Acceptor`](hookgate::Acceptor) claims nothing and has no handler, so a probe or a fault layer has nothing to see. It is a
//! tower service: a log goes [through](Replay::through) it, signed again. The sink's entries after the replay are the proof.
//!
//! ```
//! use hookgate::record::LoggedDelivery;
//! use hookgate_testing::{DeliveryLog, InProcess, Replay, Signer};
//! use hookgate::{Inbox, Receiver, Secret, UnixSeconds};
//!
//! # let folder = std::env::temp_dir().join(format!("hookgate-doc-replay-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! # let file = folder.join("inbox.db");
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let at = UnixSeconds::new(1_763_690_000);
//! let logged = |id: &str| {
//!     let body = format!(r#"{{"id":"{id}","type":"page.created"}}"#);
//!     LoggedDelivery::new(at, Signer::new(secret.clone()).at(at).headers(&body), body)
//! };
//! let log: DeliveryLog = [logged("evt_1"), logged("evt_2")].into_iter().collect();
//!
//! let inbox = Inbox::open(file)?;
//! let acceptor = Receiver::builder().secret(secret.clone()).accept_into(inbox.clone())?;
//! let through = Replay::of(log).secret(secret).resigned().through(InProcess::new(acceptor));
//! let report = through.duplicated(3).shuffled(7).concurrency(4).run().await?;
//! assert!(report.all_accepted());
//! assert_eq!(inbox.stats().await?.queued, 2); // each event once, however often it came
//! # inbox.close().await;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # std::fs::remove_dir_all(folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Before and after a change
//!
//! A report is also JSON. Keep one, and [`Report::diff`] shows the differences that your change makes.
//!
//! # Security
//! A report holds ids, types and statuses, and no body, signature or secret. The log itself is as confidential as the data.

mod answered;
mod attempt;
mod build_report;
mod builder;
mod choices;
mod clock;
mod diff;
mod display;
mod end_signal;
mod entry;
mod error;
mod fault_layer;
mod faults;
mod harness;
mod mode;
mod observations;
mod plan;
mod probe;
mod process;
mod report;
mod runner;
mod secrets;
mod through;

pub use answered::{Answered, AnsweredReport, Latency, Summary};
pub use builder::Replay;
pub use clock::ReplayClock;
pub use diff::{EventDiff, EventResult, ReportDiff};
pub use error::{ReplayError, ReplayErrorKind};
pub use fault_layer::{FaultLayer, FaultService};
pub use faults::Faults;
pub use harness::{Harness, HarnessLayer};
pub use mode::{AsRecorded, Mode, Portable, Raw, Resigned};
pub use report::{
    AttemptReport, CommitReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport,
    Verdict,
};
pub use through::Through;
