//! The guard: its settings.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hookgate::{dedupe::RetrySchedule, verify::Window};

use super::judge::Ordered;
use super::store::OrderStore;
use super::turns::Turns;

/// Tells a handler whether its event is the newest of its row. See [the crate's page](crate).
///
/// It is a tower layer. Put it **inside** the receiver's layer:
/// `post(on_event).layer((receiver.layer(), guard))`. In an inbox, put it around the service of the
/// workers: `Workers::new(&inbox).start(guard.layer(service))`. For a handler function of
/// [`Receiver::handle`](hookgate::Receiver::handle) or `Workers::start_handler`, see
/// [`ordered`](Self::ordered).
#[derive(Clone)]
#[must_use = "a guard does nothing until it is a layer of a service, or around a handler"]
pub struct OrderGuard {
    pub(super) store: Arc<dyn OrderStore>,
    pub(super) turns: Arc<Turns>,
    pub(super) retention: Duration,
    pub(super) skips_stale: bool,
    pub(super) expects_creations: bool,
    pub(super) ordered: Option<Hook<Ordered>>,
    #[cfg(feature = "metrics")]
    pub(super) metrics: super::metrics::OrderMetrics,
}

pub(super) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

impl OrderGuard {
    /// Makes a guard with this store. All guards of the same rows, in all processes, must use the
    /// same store. In one process, use clones of one guard: they handle one event of a row at a
    /// time.
    pub fn new(store: impl OrderStore) -> Self {
        Self {
            store: Arc::new(store),
            turns: Arc::default(),
            retention: Duration::from_secs(7 * 24 * 3_600),
            skips_stale: false,
            expects_creations: false,
            ordered: None,
            #[cfg(feature = "metrics")]
            metrics: super::metrics::OrderMetrics::named("default".into()),
        }
    }

    /// Sets the time for which the newest event of a row is remembered, from the end of its
    /// handler. Default: 7 days. An event that does not change the record, such as a repeat and
    /// most stale events, does not renew the time. After this time, the next event of the row is
    /// `Newest`, however old it is. With an inbox, set the time for which entries may wait there,
    /// dead letters included.
    ///
    /// The minimum is [`RetrySchedule::minimum_retention`] of the service's schedule, 26 h 46 min
    /// 30 s. A shorter time counts as the minimum.
    pub fn retention(mut self, retention: Duration) -> Self {
        let least = RetrySchedule::default().minimum_retention(&Window::default());
        self.retention = retention.max(least);
        self
    }

    /// Answers a stale event 204, without the handler. The event is then done, and its values are
    /// lost. By default the handler runs, and gets [`Order::Stale`](super::Order::Stale).
    pub fn skip_stale(mut self) -> Self {
        self.skips_stale = true;
        self
    }

    /// Also reports an update of a row without a record as a [gap](Ordered::gap): its creation was
    /// missed.
    ///
    /// Set it only if the guard has seen the creation of every row, and still has its record. This
    /// needs a data model whose first row is younger than the guard, a store that survives
    /// restarts, and a [retention](Self::retention) of `Duration::MAX`. Otherwise older rows, and
    /// rows whose records have ended, are reported too.
    pub fn expect_creations(mut self) -> Self {
        self.expects_creations = true;
        self
    }

    /// Calls `hook` for each handled event about a row, after the store has recorded it. A panic in
    /// the hook has no effect. Where the event shows a [gap](Ordered::gap), use the hook to request
    /// a reconciliation of the data model.
    pub fn on_ordered(mut self, hook: impl Fn(&Ordered) + Send + Sync + 'static) -> Self {
        self.ordered = Some(Arc::new(hook));
        self
    }

    /// Sets the label `guard` of this guard's metrics. Default: `default`.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.metrics = super::metrics::OrderMetrics::named(name.to_owned().into());
        self
    }

    pub(super) fn started(&self) -> Arc<Self> {
        #[cfg(feature = "metrics")]
        self.metrics.begin();
        Arc::new(self.clone())
    }
}

impl fmt::Debug for OrderGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderGuard")
            .field("store", &self.store)
            .field("retention", &self.retention)
            .field("skips_stale", &self.skips_stale)
            .finish_non_exhaustive()
    }
}
