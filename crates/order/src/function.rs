//! A guard around a handler that is a function.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use hookgate::Delivery;
use hookgate::layer::{FromDelivery, IntoAnswer};
use http::Response;

use super::guard::OrderGuard;
use super::judge::Order;
use super::run::run;

impl OrderGuard {
    /// Puts the guard around a function of an event and its order. The result is a handler for
    /// [`Receiver::handle`](hookgate::Receiver::handle) and `Workers::start_handler`.
    ///
    /// ```
    /// use hookgate_order::{MemoryOrderStore, Order, OrderGuard};
    /// use hookgate::{Event, MemoryStore, Receiver, Secret};
    /// use http::{Request, StatusCode};
    /// # use hookgate::{
    /// #     clock::{Clock, SystemClock},
    /// #     verify::{Signature, Timestamp},
    /// # };
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
    ) -> impl FnOnce(Delivery) -> Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>
    + Clone
    + Send
    + use<D, H, F>
    where
        D: FromDelivery + 'static,
        H: FnOnce(D, Order) -> F + Clone + Send + 'static,
        F: Future<Output: IntoAnswer> + Send + 'static,
    {
        let guard = self.started();
        move |delivery: Delivery| {
            Box::pin(async move {
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
}
