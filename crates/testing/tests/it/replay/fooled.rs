//! Stores, handlers and receivers that give false reports, none of which deceives the replay's
//! report.

use std::fmt;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use hookgate::{
    DeadLetter, DedupeStore, Delivery, MemoryStore, Receiver,
    dedupe::{ClaimToken, Claimed, EventKey, Ownership, StoreError, StoreErrorKind, StoreFuture},
    verify::Window,
};
use hookgate_testing::replay::{ReplayError, Report, Verdict};
use hookgate_testing::{Faults, Harness};
use http::StatusCode;

use super::apps::{guarded, in_memory};
use super::*;
use crate::says;

/// The promise that a store breaks.
#[derive(Clone, Copy, Debug)]
enum BrokenPromise {
    /// Every claim is fresh, and every commit held.
    GrantsAll,
    /// Says that it holds the commit, and releases the claim in its place.
    ForgetsCommits,
    /// Says that each claim was lost when it is committed.
    LosesCommits,
    /// Fails to answer a commit, which it has not done.
    FailsCommits,
    /// Does the call, and the reply is lost.
    LosesReplies,
    /// Reports every event as done.
    KnowsAll,
}

struct Broken(BrokenPromise, MemoryStore);

impl fmt::Debug for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl DedupeStore for Broken {
    fn claim<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Claimed> {
        match self.0 {
            BrokenPromise::GrantsAll => StoreFuture::ready(Ok(Claimed::Fresh)),
            BrokenPromise::KnowsAll => StoreFuture::ready(Ok(Claimed::Done {
                body_mark: ClaimToken::new(b"somebody else's").body_mark(),
            })),
            _ => self.1.claim(key, token, lease),
        }
    }

    fn renew<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        lease: Duration,
    ) -> StoreFuture<'a, Ownership> {
        self.1.renew(key, token, lease)
    }

    fn commit<'a>(
        &'a self,
        key: &'a EventKey,
        token: ClaimToken,
        retain: Duration,
    ) -> StoreFuture<'a, Ownership> {
        let unknown = || StoreError::new(StoreErrorKind::TimedOut);
        match self.0 {
            BrokenPromise::GrantsAll => StoreFuture::ready(Ok(Ownership::Held)),
            BrokenPromise::ForgetsCommits => self.1.release(key, token),
            BrokenPromise::LosesCommits => StoreFuture::ready(Ok(Ownership::Lost)),
            BrokenPromise::FailsCommits => StoreFuture::ready(Err(unknown())),
            BrokenPromise::LosesReplies => StoreFuture::boxed(async move {
                self.1.commit(key, token, retain).await?;
                Err(unknown())
            }),
            BrokenPromise::KnowsAll => self.1.commit(key, token, retain),
        }
    }

    fn release<'a>(&'a self, key: &'a EventKey, token: ClaimToken) -> StoreFuture<'a, Ownership> {
        self.1.release(key, token)
    }
}

/// The gate is gone: every request reaches the handler, a forged delivery too.
fn open(harness: &Harness) -> Result<Router, ReplayError> {
    harness.receiver(in_memory(harness))?;
    let handler = async || StatusCode::NO_CONTENT;
    Ok(Router::new().route("/webhooks", post(handler)))
}

async fn with_store(breach: BrokenPromise, faults: Faults) -> Report {
    play(small_log())
        .with(faults)
        .against(|harness| {
            let inner = MemoryStore::default().with_clock(harness.clock());
            guarded(&harness, Receiver::builder().store(Broken(breach, inner)))
        })
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_store_that_forgets_or_grants_every_claim_is_found_by_repeated_runs() {
    for breach in [BrokenPromise::GrantsAll, BrokenPromise::ForgetsCommits] {
        // Even without a fault: one event has a copy in the log.
        let report = with_store(breach, Faults::none()).await;
        let twice: Vec<_> = report.twice().map(|event| &*event.id).collect();
        assert_eq!(twice, ["evt_2"], "{breach:?}: {report}");
        assert!(!report.each_event_committed_once());
        says(&report, "TWICE: evt_2 row.deleted");
        let report = with_store(breach, Faults::seeded(1).share(1.0).duplicate()).await;
        assert_eq!(report.twice().count(), 5, "{breach:?}: {report}");
    }
}

/// Every status reports success.
#[tokio::test(start_paused = true)]
async fn a_2xx_whose_commit_is_lost_does_not_count_as_a_commit() {
    for breach in [BrokenPromise::LosesCommits, BrokenPromise::FailsCommits] {
        let report = with_store(breach, Faults::none()).await;
        let of_events = report.events().iter().flat_map(|event| &event.attempts);
        let firsts = of_events.filter(|attempt| attempt.line != 3);
        let statuses: Vec<_> = firsts.map(|it| it.status).collect();
        assert_eq!(statuses, [Some(204); 5], "{report}");
        assert_eq!(report.once().count(), 0, "{breach:?}: {report}");
        assert!(report.never().count() >= 4, "{breach:?}: {report}");
        assert!(!report.each_event_committed_once());
        let event = report.event("evt_1").unwrap();
        assert_eq!((event.runs.len(), event.commits.len()), (1, 0));
        let unknown = event.commits_lost + event.commits_unanswered;
        assert!(unknown >= 1, "{report}");
        says(&report, "answered 2xx, so the sender does not come again");
    }
}

/// A commit that took effect is one, even if its reply was lost; a copy shows it.
#[tokio::test(start_paused = true)]
async fn a_commit_whose_reply_is_lost_is_seen_when_a_copy_finds_it() {
    let faults = Faults::seeded(1).share(1.0).duplicate();
    let report = with_store(BrokenPromise::LosesReplies, faults).await;
    assert!(report.each_event_committed_once(), "{report}");
    let mut events = report.events().iter();
    assert!(events.all(|event| event.commits_unanswered >= 1));
}

#[tokio::test(start_paused = true)]
async fn done_does_not_commit_where_nothing_ran() {
    let report = with_store(BrokenPromise::KnowsAll, Faults::none()).await;
    let mut events = report.events().iter();
    assert!(events.all(|it| it.attempts[0].status == Some(200)));
    assert_eq!((report.never().count(), report.runs()), (5, 0), "{report}");
    says(&report, "done before the replay");
}

/// A receiver that knows another secret as well accepts deliveries that were refused when the log
/// was made.
#[tokio::test(start_paused = true)]
async fn what_never_was_authentic_must_stay_refused() {
    let report = play(small_log())
        .against(|harness| open(&harness))
        .await
        .unwrap();
    let let_in: Vec<_> = report.let_in().map(|other| other.line).collect();
    assert_eq!(let_in, [4], "{report}");
    assert!(!report.each_event_committed_once());
    says(&report, "answered 2xx though never authentic: line 4");
    // And nothing was committed, whatever the statuses say.
    assert_eq!(report.never().count(), 5, "{report}");
}

/// A log without an event proves nothing, even if all of it was refused correctly.
#[tokio::test(start_paused = true)]
async fn a_report_without_events_is_not_a_success() {
    let report = play(log([forged("evt_1", 0), forged("evt_2", 1)]))
        .against(|harness| guarded(&harness, Receiver::builder().store(MemoryStore::default())))
        .await
        .unwrap();
    assert_eq!((report.events().len(), report.let_in().count()), (0, 0));
    assert!(!report.each_event_committed_once());
}

/// The window is the user's own: a delivery inside of it is not outside of the window.
#[tokio::test(start_paused = true)]
async fn the_receivers_own_settings_hold() {
    let window = Window::default().with_past(Duration::from_secs(3_600));
    let late = logged_at("evt_1", NOW, NOW - 1_000);
    let faults = Faults::seeded(1).delay_past_window();
    for (faults, attempts) in [(Faults::none(), 1), (faults, 2)] {
        let report = play(log([late.clone()]))
            .with(faults)
            .against(|harness| guarded(&harness, in_memory(&harness).window(window)))
            .await
            .unwrap();
        assert!(report.each_event_committed_once(), "{report}");
        assert_eq!(report.attempts().count(), attempts, "{report}");
        let first = report.attempts().next().unwrap();
        assert_eq!(first.outside_window, attempts == 2);
    }
}

/// A dead letter that its hook takes is handled; one that it does not take is tried again.
#[tokio::test(start_paused = true)]
async fn dead_letters_count_once_they_are_committed() {
    for (taken, verdict) in [(true, Verdict::Once), (false, Verdict::Never)] {
        let report = play(log([logged("evt_1", 0)]))
            .against(|harness| {
                let answer = move || taken.then_some(()).ok_or("no room for it".into());
                let settings = in_memory(&harness);
                let settings = settings.on_dead_letter(move |_, _| std::future::ready(answer()));
                let handler = async |_: Delivery| DeadLetter::new("never");
                let guard = harness.layer(settings)?;
                Ok::<_, ReplayError>(Router::new().route("/webhooks", post(handler).layer(guard)))
            })
            .await
            .unwrap();
        let event = report.event("evt_1").unwrap();
        assert_eq!(event.verdict(), verdict, "{report}");
        assert_eq!(event.runs.len(), if taken { 1 } else { 6 }, "{report}");
    }
}

/// A receiver without a window, and one that takes every copy of a delivery with any signature.
#[tokio::test(start_paused = true)]
async fn a_copy_that_was_tampered_with_must_be_refused() {
    let faults = || Faults::seeded(7).share(1.0).tampered();
    let right = play(small_log()).with(faults());
    let right = right.against(|harness| guarded(&harness, in_memory(&harness)));
    let report = right.await.unwrap();
    assert!(report.each_event_committed_once(), "{report}");
    let tampered: Vec<_> = report.attempts().filter(|it| it.tampered).collect();
    assert_eq!(tampered.len(), 6, "each authentic delivery once: {report}");
    assert!(tampered.iter().all(|it| it.status == Some(401)), "{report}");
    let text = report.to_string();
    assert!(text.ends_with("Faults::seeded(7).share(1.0).tampered()"));

    let open = play(small_log()).with(faults());
    let report = open.against(|harness| self::open(&harness)).await.unwrap();
    assert_eq!(report.let_in_tampered().count(), 6, "{report}");
    assert!(!report.each_event_committed_once());
    says(&report, "tampered with");
}
