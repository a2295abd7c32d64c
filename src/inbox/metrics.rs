//! Metrics of an inbox's workers (feature `metrics`), and gauges of the inbox, read when they are asked for.

#[cfg(feature = "metrics")]
pub(super) use on::{begin, dead_lettered, lost, store_failed, tried};

#[cfg(not(feature = "metrics"))]
pub(super) use off::{begin, dead_lettered, lost, store_failed, tried};

#[cfg(feature = "metrics")]
mod on {
    use metrics::{Key, KeyName, Label, Recorder, SharedString};

    use crate::caught::caught;
    use crate::dedupe::StoreError;
    use crate::inbox::durable::Inbox;
    use crate::inbox::engine::InboxStats;
    use crate::inbox::workers::{AttemptReport, Disposition};
    use crate::layer::metrics::{Labels, METADATA, OTHER, OutcomeLabels, names};

    /// Calls `tell` with the recorder. A panic in it does no harm.
    fn tell(inbox: &str, tell: impl FnOnce(To<'_>)) {
        let _ = caught(|| metrics::with_recorder(|recorder| tell(To { inbox, recorder })));
    }

    #[derive(Clone, Copy)]
    struct To<'a> {
        inbox: &'a str,
        recorder: &'a dyn Recorder,
    }

    impl To<'_> {
        fn key<const N: usize>(self, name: &'static str, labels: Labels<N>) -> Key {
            let mut all = Vec::with_capacity(N + 1);
            all.push(Label::new("inbox", self.inbox.to_owned()));
            all.extend(labels.map(|(name, value)| Label::new(name, value)));
            Key::from_parts(KeyName::from_const_str(name), all)
        }

        /// Adds to a counter. Zero registers the counter without counting.
        fn count<const N: usize>(self, name: &'static str, more: u64, labels: Labels<N>) {
            let key = self.key(name, labels);
            self.recorder
                .register_counter(&key, &METADATA)
                .increment(more);
        }

        fn set<const N: usize>(self, name: &'static str, value: f64, labels: Labels<N>) {
            let key = self.key(name, labels);
            self.recorder.register_gauge(&key, &METADATA).set(value);
        }

        /// Registered at the start: Prometheus sees no increase when a counter appears with its first value, and these must not
        /// be missed.
        fn known(self) {
            self.count(names::INBOX_DEAD_LETTERS, 0, []);
            self.count(names::INBOX_LOST_LEASES, 0, []);
        }

        #[allow(clippy::cast_precision_loss)] // exact far beyond what a disk holds
        fn stats(self, stats: &InboxStats) {
            let states = [
                ("queued", stats.queued.saturating_sub(stats.retrying)),
                ("retrying", stats.retrying),
                ("running", stats.running),
                ("dead", stats.dead),
                ("done", stats.done),
            ];
            for (state, count) in states {
                self.set(
                    names::INBOX_ENTRIES,
                    count as f64,
                    [("state", state.into())],
                );
            }
            let oldest = stats.oldest.unwrap_or_default();
            self.set(names::INBOX_OLDEST_AGE, oldest.as_secs_f64(), []);
        }
    }

    /// Called when workers have started.
    pub(crate) fn begin(inbox: &str) {
        tell(inbox, |to| to.known());
    }

    /// Called when a try of a worker has ended.
    pub(crate) fn tried(inbox: &str, tried: &AttemptReport) {
        tell(inbox, |to| {
            let labels = OutcomeLabels::of(tried.outcome, None);
            let outcome = || SharedString::const_str(labels.outcome);
            let disposition = match tried.disposition {
                Disposition::Done => "done",
                Disposition::Retry { .. } => "retry",
                Disposition::Dead => "dead",
                Disposition::Returned => "returned",
                Disposition::Unrecorded => "unrecorded",
            };
            let labels = [
                ("outcome", outcome()),
                ("reason", labels.reason.into()),
                ("disposition", disposition.into()),
            ];
            to.count(names::INBOX_TRIES, 1, labels);
            let event_type = tried.delivery.head().event_type.known().unwrap_or(OTHER);
            let labels = [("outcome", outcome()), ("event_type", event_type.into())];
            let key = to.key(names::INBOX_HANDLER, labels);
            to.recorder
                .register_histogram(&key, &METADATA)
                .record(tried.elapsed);
            if tried.disposition == Disposition::Dead {
                to.count(names::INBOX_DEAD_LETTERS, 1, []);
            }
        });
    }

    /// Called when an entry became a dead letter without the end of a try.
    pub(crate) fn dead_lettered(inbox: &str) {
        tell(inbox, |to| to.count(names::INBOX_DEAD_LETTERS, 1, []));
    }

    /// Called when a lease was lost while its handler was running.
    pub(crate) fn lost(inbox: &str) {
        tell(inbox, |to| to.count(names::INBOX_LOST_LEASES, 1, []));
    }

    /// Called when a call of the store failed.
    pub(crate) fn store_failed(inbox: &str, call: &'static str) {
        tell(inbox, |to| {
            to.count(names::INBOX_STORE_FAILURES, 1, [("call", call.into())]);
        });
    }

    impl Inbox {
        /// Sets the gauges to the current content of the inbox, and describes its metrics to the recorder. Call it **before
        /// each rendering**, in the route that serves `/metrics`, or every few seconds where metrics are pushed. `name` is the
        /// label `inbox`: that of [`Workers::metrics_name`](crate::inbox::Workers::metrics_name).
        ///
        /// It asks the store. One process that calls it is enough, because all processes see the same inbox. The work of the
        /// workers is counted when it happens. `docs/operations.md` lists all metrics.
        ///
        /// # Errors
        /// The store failed to answer, and no gauge was set.
        #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
        pub async fn record_metrics(&self, name: &str) -> Result<(), StoreError> {
            let stats = self.engine.stats().await?;
            tell(name, |to| {
                names::describe(to.recorder, names::INBOX);
                to.known();
                to.stats(&stats);
            });
            Ok(())
        }
    }
}

#[cfg(not(feature = "metrics"))]
mod off {
    use crate::inbox::workers::AttemptReport;

    pub(crate) fn begin(_: &str) {}

    pub(crate) fn tried(_: &str, _: &AttemptReport) {}

    pub(crate) fn dead_lettered(_: &str) {}

    pub(crate) fn lost(_: &str) {}

    pub(crate) fn store_failed(_: &str, _: &'static str) {}
}
