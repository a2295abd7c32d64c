//! Replay: a log of deliveries becomes a test.
//!
//! A [delivery log](super::log) holds what came to a receiver, byte for byte. Replayed in a test, it answers what no unit test of a handler
//! can: does this receiver, with this store, handle each of these events once, whatever goes wrong on the way?
//!
//! ```
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::testing::{Faults, Harness, Replay};
//! use hookgate::{Event, MemoryStore, Receiver, ReplayError, Secret};
//!
//! async fn on_event(event: Event) -> StatusCode {
//!     println!("{}", event.id);
//!     StatusCode::NO_CONTENT
//! }
//!
//! /// The app: as in production, but for `harness.layer(…)` in the place of `receiver.layer()`.
//! fn app(harness: &Harness) -> Result<Router, ReplayError> {
//!     let store = MemoryStore::default().with_clock(harness.clock());
//!     let guard = harness.layer(Receiver::builder().store(store))?;
//!     Ok(Router::new().route("/webhooks", post(on_event).layer(guard)))
//! }
//!
//! # fn open(_: &str) -> Result<hookgate::testing::DeliveryLog, Box<dyn std::error::Error>> {
//! #     use hookgate::testing::{LoggedDelivery, Signer};
//! #     let logged = |number: i64| {
//! #         let at = hookgate::UnixSeconds::new(1_763_690_000 + 20 * number);
//! #         let event = hookgate::testing::EventFactory::seeded(number as u64).row_created();
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
//! # What is seen
//!
//! A status is what a receiver says of itself. The [report](Report) rests on three other witnesses: a **probe** before your store, which
//! sees each claim and each commit; a **fault layer** directly before your handler, which counts its runs and how they ended; and the log,
//! each of whose deliveries is verified before the replay begins, so that one that never was authentic must stay refused. An event is
//! committed *once* when one run of the handler ended well and one commit was confirmed; *never* when either is missing, though the
//! sender may have heard 2xx; *twice* when there was more than one of either.
//!
//! A receiver [without deduplication](crate::ReceiverBuilder::without_deduplication) commits nothing that could be seen, and is an error.
//!
//! # At which time, with which signature
//!
//! | | clock of the receiver | signature | against an app | through a transport |
//! |---|---|---|---|---|
//! | [`Replay::of`] | stands at each delivery's `received_at` | as recorded | yes | no |
//! | [`resigned`](Replay::resigned) | the same | for the moment at which it goes out | yes | yes, by the machine's clock |
//! | [`raw`](Replay::raw) | any other time | as recorded | yes | yes |
//!
//! The harness gives its clock to the receiver as it is built, and there is no other way to one: no header and no extension of a request
//! can say what time it is, in a replay or anywhere else. So a log is replayed at its recorded time in process alone. What goes
//! [through a transport](Replay::through), to a URL for instance, is signed again or refused for its age, and its report says what was
//! *answered*.
//!
//! [Redacted](super::log::Redaction) deliveries have lost the bytes that were signed. They are named in an error until you ask for
//! [`resign_unverifiable`](Replay::resign_unverifiable). What never was authentic is never signed.
//!
//! # Time
//!
//! Tokio's time has to be paused, `#[tokio::test(start_paused = true)]` (tokio's feature `test-util`). Recorded gaps and the sender's day
//! of retries then pass in milliseconds, and timers, leases and ages stay true to each other. [`Harness::clock`] is that time for your
//! stores; one that goes by the machine's clock sees leases that never end.
//!
//! **The trap of paused time:** whenever every task waits, tokio puts its clock forward to the next timer. A task that waits for a socket,
//! a thread or a database waits too, so its time-out strikes before the answer can come. An app that does real I/O is replayed with
//! [`in_real_time`](Replay::in_real_time): recorded gaps then pass as they are, or as short as you say.
//!
//! # What goes wrong
//!
//! [`Faults`] fall on deliveries and events by a seed, and everything is chosen before the first delivery goes out: the same seed is the
//! same replay. The report ends with the expression that repeats it. Faults of the handler strike in its place, before it is called, so
//! that a run that fails has done nothing.
//!
//! After a failed attempt the sender comes again, after the waits of its [schedule](Replay::schedule): only so can a test say that nothing
//! was lost. A retry is signed afresh, since after 300 s the recorded signature is stale; with
//! [`retries_keep_their_signature`](Replay::retries_keep_their_signature) it is not, and what is lost to that stands in the report. Where
//! the log holds a later delivery of the event, that one is the retry. Copies and forged deliveries are not tried again. An event whose
//! faults leave it no attempt is discarded, as the sender would discard it, and counts as *never*.
//!
//! # Processes
//!
//! With [`Faults::restarts`] the closure is called again for a new app. Everything that the old one had under way has ended as a killed
//! process ends: handlers are dropped where they wait, nothing reaches a store or a hook any more, requests get no answer. What your
//! handler has spawned by itself can't be reached, and lives on.
//!
//! A [`MemoryStore`](crate::MemoryStore) made in the closure forgets with its process, and the report then says *twice*, because that is
//! what happens. A store that outlives processes is made outside, on [`Replay::clock`]:
//!
//! ```
//! use axum::{Router, http::StatusCode, routing::post};
//! use hookgate::testing::{DeliveryLog, Faults, LoggedDelivery, Replay, Signer};
//! use hookgate::{Delivery, LocalStore, Receiver, ReplayError, Secret, UnixSeconds};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! let secret = Secret::new("whsec_made_up_for_this_example")?;
//! let at = UnixSeconds::new(1_763_690_000);
//! let body = r#"{"id":"evt_1","type":"page.created"}"#;
//! let headers = Signer::new(secret.clone()).at(at).headers(body);
//! let log: DeliveryLog = [LoggedDelivery::new(at, headers, body)].into_iter().collect();
//!
//! let replay = Replay::of(log).secret(secret).with(Faults::seeded(1).restarts(1).duplicate());
//! let store = LocalStore::default().with_clock(replay.clock()); // stands for your own, in a database
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
//! An [`Acceptor`](crate::Acceptor) claims nothing and has no handler, so there is nothing for a probe or a fault layer to see. It is a tower
//! service: a log goes [through](Replay::through) it, signed again, and the witness is what the sink holds afterwards.
//!
//! ```
//! # #[cfg(feature = "inbox")] {
//! use hookgate::testing::{DeliveryLog, InProcess, LoggedDelivery, Replay, Signer};
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
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Before and after a change
//!
//! A report is also JSON. Keep one, and [`Report::diff`] says what your change has changed.
//!
//! # Security
//! A report holds ids, types and statuses, and no body, signature or secret. The log itself is as confidential as the data.

mod answered;
mod attempt;
mod builder;
mod chance;
mod clock;
mod conclude;
mod diff;
mod display;
mod drive;
mod entry;
mod fault_layer;
mod faults;
mod harness;
mod ledger;
mod life;
mod mode;
mod plan;
mod probe;
mod report;
mod secrets;
mod through;

pub use answered::{Answered, AnsweredReport, Latency, Summary};
pub use builder::Replay;
pub use clock::ReplayClock;
pub use diff::{Came, EventDiff, ReportDiff};
pub use fault_layer::{FaultLayer, FaultService};
pub use faults::Faults;
pub use harness::{Harness, HarnessLayer};
pub use mode::{AsRecorded, Mode, Portable, Raw, Resigned};
pub use report::{
    AttemptReport, CommitReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport,
    Verdict,
};
pub use through::Through;
