//! The guard: its settings, and the layer that it is.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use tower_layer::Layer;

use super::judge::Order;
use super::report::{Gap, Ordered};
use super::run::run;
use super::service::OrderService;
use super::store::OrderStore;
use crate::dedupe::RetrySchedule;
use crate::future::CallFuture;
use crate::layer::{FromDelivery, IntoAnswer};
use crate::observe::Hook;
use crate::verify::Window;
use crate::walk::Delivery;

/// Tells a handler whether its event is the newest of its row. See the [module docs](super).
///
/// It is a tower layer, and stands **inside** the receiver's: `post(on_event).layer(guard).layer(receiver.layer())`. In an inbox it goes
/// around the service of the workers: `Workers::new(&inbox).start(guard.layer(service))`. For a handler that is a function, as those
/// of [`Receiver::handle`](crate::Receiver::handle) and of `Workers::start_handler`, see [`ordered`](Self::ordered).
#[derive(Clone)]
#[must_use = "a guard does nothing until it is a layer of a service, or around a handler"]
pub struct OrderGuard {
    pub(super) store: Arc<dyn OrderStore>,
    pub(super) retention: Duration,
    pub(super) skips_stale: bool,
    pub(super) expects_creations: bool,
    pub(super) ordered: Option<Hook<Ordered>>,
    pub(super) gap: Option<Hook<Gap>>,
    #[cfg(feature = "metrics")]
    pub(super) metrics: super::metrics::OrderMetrics,
}

impl OrderGuard {
    /// Makes a guard with this store. All guards of a row share one store, as receivers in several processes share their claims.
    pub fn new(store: impl OrderStore) -> Self {
        Self {
            store: Arc::new(store),
            retention: Duration::from_secs(7 * 24 * 3_600),
            skips_stale: false,
            expects_creations: false,
            ordered: None,
            gap: None,
            #[cfg(feature = "metrics")]
            metrics: super::metrics::OrderMetrics::named("default".into()),
        }
    }

    /// Sets the time for which the newest event of a row is remembered, from the end of its handler. Default: 7 days. An event that
    /// comes later than that is the newest one, however old it is: with an inbox, take as long as entries wait there, dead letters
    /// included.
    ///
    /// A shorter time than [`RetrySchedule::minimum_retention`] has for the service's schedule, 26 h 46 min 30 s, counts as that time.
    pub fn retention(mut self, retention: Duration) -> Self {
        let least = RetrySchedule::default().minimum_retention(&Window::default());
        self.retention = retention.max(least);
        self
    }

    /// Answers a stale event with 204, without the handler. It is done then, and its values are lost. By default the handler runs, and
    /// is told.
    pub fn skip_stale(mut self) -> Self {
        self.skips_stale = true;
        self
    }

    /// Reports an update of a row without a record as a [gap](Self::on_gap) too: its creation was missed.
    ///
    /// Set it only if the guard has seen the creation of every row, and still has its record: a data model whose first row is younger
    /// than the guard, a store that survives restarts, and a [retention](Self::retention) of `Duration::MAX`. Otherwise rows from before the guard, and rows
    /// whose records have ended, are reported.
    pub fn expect_creations(mut self) -> Self {
        self.expects_creations = true;
        self
    }

    /// Calls `hook` for each event about a row that was handled, once the store has recorded it. A panic in it has no effect.
    pub fn on_ordered(mut self, hook: impl Fn(&Ordered) + Send + Sync + 'static) -> Self {
        self.ordered = Some(Arc::new(hook));
        self
    }

    /// Calls `hook` for each handled event that shows that another event of its row was missed, or is late. A panic in it has no
    /// effect. It is the place to ask for a reconciliation of the data model.
    pub fn on_gap(mut self, hook: impl Fn(&Gap) + Send + Sync + 'static) -> Self {
        self.gap = Some(Arc::new(hook));
        self
    }

    /// Sets the label `guard` of this guard's metrics. Default: `default`.
    #[cfg(feature = "metrics")]
    #[cfg_attr(docsrs, doc(cfg(feature = "metrics")))]
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.metrics = super::metrics::OrderMetrics::named(name.to_owned().into());
        self
    }

    /// Puts the guard around a function of an event and its order, for [`Receiver::handle`](crate::Receiver::handle) and
    /// `Workers::start_handler`.
    ///
    /// ```
    /// use hookgate::order::{MemoryOrderStore, Order, OrderGuard};
    /// use hookgate::{Event, MemoryStore, Receiver, Secret};
    /// use http::{Request, StatusCode};
    /// # use hookgate::{Clock, Signature, SystemClock, Timestamp};
    /// # use http_body_util::Full;
    ///
    /// async fn on_event(event: Event, order: Order) -> StatusCode {
    ///     println!("{}: {}", event.id, order.name());
    ///     match order {
    ///         Order::Newest | Order::Unknown => StatusCode::CREATED, // written
    ///         Order::Stale => StatusCode::NO_CONTENT,                // left alone
    ///     }
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// let secret = Secret::new("whsec_made_up_for_this_example")?;
    /// let receiver = Receiver::builder().secret(secret.clone()).store(MemoryStore::default()).build()?;
    /// let guard = OrderGuard::new(MemoryOrderStore::default());
    /// # let signed = |id: &str, created_at: &str| {
    /// #     let body = format!(r#"{{"id":"{id}","type":"row.deleted","createdAt":"{created_at}","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1"}}}}"#);
    /// #     let now = Timestamp::at(SystemClock.now()).unwrap();
    /// #     let signature = Signature::sign(&secret, &now, body.as_bytes()).to_header_value();
    /// #     Request::post("/webhooks").header("x-service-timestamp", now.as_str()).header("x-service-signature", signature)
    /// #         .body(Full::<bytes::Bytes>::from(body)).unwrap()
    /// # };
    /// for (request, status) in [
    ///     (signed("evt_2", "2026-11-21T09:30:02Z"), 201),
    ///     (signed("evt_1", "2026-11-21T09:30:01Z"), 204), // came late
    /// ] {
    ///     assert_eq!(receiver.handle(request, guard.ordered(on_event)).await.status(), status);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn ordered<D, H, F>(
        &self,
        handler: H,
    ) -> impl FnOnce(Delivery) -> CallFuture<'static, Response<Bytes>> + Clone + Send + use<D, H, F>
    where
        D: FromDelivery + 'static,
        H: FnOnce(D, Order) -> F + Clone + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        let guard = self.begun();
        move |delivery: Delivery| {
            CallFuture::boxed(async move {
                // Not async: an argument need not be `Send`.
                let handle = |order| {
                    let handling = D::from_delivery(&delivery).map(|event| handler(event, order));
                    async move {
                        Ok::<_, Infallible>(match handling {
                            Ok(handling) => handling.await.into_answer(),
                            Err(mismatch) => mismatch.into_answer(),
                        })
                    }
                };
                match run(&guard, &delivery, handle).await {
                    Ok(response) => response,
                    Err(never) => match never {},
                }
            })
        }
    }

    fn begun(&self) -> Arc<Self> {
        #[cfg(feature = "metrics")]
        self.metrics.begin();
        Arc::new(self.clone())
    }
}

impl<S> Layer<S> for OrderGuard {
    type Service = OrderService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        OrderService {
            guard: self.begun(),
            inner,
        }
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
