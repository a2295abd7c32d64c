//! One request to an inspector: its page, the list, a delivery, its explanation, its replay, or the stream.

use std::net::SocketAddr;
use std::sync::Arc;

use http::{Method, Request, Response, request};
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::serve::{paged, response};
use super::server::{Closed, Serve};
use super::{Access, Reply, guard, stream};
use crate::answer::{Answer, ApiError};
use crate::inspector::{DeliveryFilter, Inspected, Shown};
use crate::page;
use crate::query::Query;

/// The number of deliveries in a list if the request has no `limit`.
const SOME: u64 = 100;

impl Serve for Shown {
    async fn serve(
        self: Arc<Self>,
        access: Arc<Access>,
        _: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Closed> {
        let (head, _) = request.into_parts();
        let mut answer = match guard::check(&access, &head.method, &head.uri, &head.headers) {
            Err(error) => response(error.into()),
            Ok(()) => self.routed(&access, &head).await,
        };
        guard::add_headers(answer.headers_mut());
        Ok(answer)
    }
}

impl Shown {
    async fn routed(self: &Arc<Self>, access: &Access, head: &request::Parts) -> Response<Reply> {
        let path = head.uri.path();
        if head.method == Method::GET
            && let Some(file) = page::file(path, page::LISTEN)
        {
            return paged(access, head, file);
        }
        if head.method == Method::GET && path == "/_listen/stream" {
            return stream(&self.live);
        }
        response(self.found(head).await.unwrap_or_else(Answer::from))
    }

    async fn found(self: &Arc<Self>, head: &request::Parts) -> Result<Answer, ApiError> {
        let path = head.uri.path();
        let missing = || ApiError::not_found("path", path);
        let path = path
            .strip_prefix("/_listen/deliveries")
            .ok_or_else(missing)?;
        let parts: Vec<_> = path.split('/').skip(1).collect();
        match (&head.method, &*parts) {
            (&Method::GET, []) => {
                let query = Query::parse(head.uri.query().unwrap_or_default());
                let limit = query.number("limit", 1, SOME)?;
                let limit = usize::try_from(limit).unwrap_or(usize::MAX);
                let filter = DeliveryFilter {
                    state: query.text("state"),
                    event_type: query.text("type"),
                    search: query.text("search"),
                };
                let found = self.inspected.deliveries(&filter, limit);
                let kept = self.inspected.kept();
                Ok(Answer::list(&found, &json!({ "kept": kept })))
            }
            (&Method::GET, [id]) => data(self.inspected.delivery(id)).ok_or_else(missing),
            (&Method::POST, [id, "explain"]) => {
                let explained = self.blocking(id, |shown, id| shown.explain(id)).await?;
                data(explained).ok_or_else(missing)
            }
            (&Method::POST, [id, "replay"]) => {
                let replayed = self.blocking(id, |shown, id| shown.replay(id)).await?;
                let told = replayed.ok_or_else(missing)?.map_err(ApiError::conflict)?;
                Ok(Answer::data(&json!({ "told": told })))
            }
            _ => Err(missing()),
        }
    }

    /// Makes a call that may block, on a thread for such calls.
    async fn blocking<T: Send + 'static>(
        &self,
        id: &str,
        call: impl FnOnce(&dyn Inspected, &str) -> T + Send + 'static,
    ) -> Result<T, ApiError> {
        let (inspected, id) = (Arc::clone(&self.inspected), id.to_owned());
        let called = tokio::task::spawn_blocking(move || call(&*inspected, &id)).await;
        called.map_err(|error| ApiError::internal(error.to_string()))
    }
}

fn data(found: Option<Value>) -> Option<Answer> {
    found.map(|found| Answer::data(&found))
}
