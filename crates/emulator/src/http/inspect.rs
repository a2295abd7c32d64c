//! One request to an inspector: its page, the receiver, the list, a delivery, its explanation, its
//! replay, a changed one, or the stream.

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{Method, Request, Response, request};
use hyper::body::Incoming;
use serde_json::Value;

use super::serve::{paged, response};
use super::server::{Closed, Serve};
use super::{Access, Reply, guard, read, stream};
use crate::answer::{Answer, ApiError};
use crate::body::is_same;
use crate::inspector::{DeliveryFilter, Inspected, Shown};
use crate::page;
use crate::query::{Query, decoded};

/// The number of deliveries in a list if the request has no `limit`.
const SOME: u64 = 100;
/// The longest body that is signed and sent: what the receiver accepts.
const LONGEST_BODY: usize = 1 << 20;

impl Serve for Shown {
    async fn serve(
        self: Arc<Self>,
        access: Arc<Access>,
        _: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Closed> {
        let (head, body) = request.into_parts();
        let mut answer = match guard::check(&access, &head.method, &head.uri, &head.headers) {
            Err(error) => response(error.into()),
            Ok(()) => self.routed(&access, &head, body).await,
        };
        guard::add_headers(answer.headers_mut());
        Ok(answer)
    }
}

impl Shown {
    async fn routed(
        self: &Arc<Self>,
        access: &Access,
        head: &request::Parts,
        body: Incoming,
    ) -> Response<Reply> {
        let path = head.uri.path();
        if head.method == Method::GET
            && let Some(file) = page::file(path, page::LISTEN)
        {
            return paged(access, head, file);
        }
        if head.method == Method::GET && path == "/_listen/stream" {
            return stream(&self.live);
        }
        response(self.found(head, body).await.unwrap_or_else(Answer::from))
    }

    async fn found(
        self: &Arc<Self>,
        head: &request::Parts,
        body: Incoming,
    ) -> Result<Answer, ApiError> {
        let path = head.uri.path();
        let missing = || ApiError::not_found("path", path);
        if (&head.method, path) == (&Method::GET, "/_listen/receiver") {
            let mut receiver = self.inspected.receiver();
            receiver["maySign"] = self.is_signer(head).into();
            return Ok(Answer::data(&receiver));
        }
        let path = path
            .strip_prefix("/_listen/deliveries")
            .ok_or_else(missing)?;
        let parts: Vec<_> = path.split('/').skip(1).map(decoded).collect();
        let parts: Vec<_> = parts.iter().map(String::as_str).collect();
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
                let (found, totals) = self.inspected.deliveries(&filter, limit);
                Ok(Answer::list(&found, &totals))
            }
            (&Method::GET, [id]) => data(self.inspected.delivery(id)).ok_or_else(missing),
            (&Method::POST, [id, "explain"]) => {
                let explained = self.blocking(id, |shown, id| shown.explain(id)).await?;
                data(explained).ok_or_else(missing)
            }
            (&Method::POST, [id, "replay"]) => {
                told(self.blocking(id, |shown, id| shown.replay(id)).await?).ok_or_else(missing)?
            }
            (&Method::POST, [id, "send"]) => {
                if !self.is_signer(head) {
                    let message = "open the page with the address that the command printed: it has the token that this takes";
                    return Err(ApiError::forbidden(message));
                }
                let body = read(body, LONGEST_BODY).await?;
                let sent = self.blocking(id, |shown, id| shown.send(id, body)).await?;
                told(sent).ok_or_else(missing)?
            }
            _ => Err(missing()),
        }
    }

    fn is_signer(&self, head: &request::Parts) -> bool {
        let given = head.headers.get(AUTHORIZATION);
        let token = given.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        token.is_some_and(|token| is_same(self.token.as_bytes(), token.as_bytes()))
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

fn told(done: Option<Result<Value, String>>) -> Option<Result<Answer, ApiError>> {
    let told = |told: Value| Answer::data(&told);
    done.map(|done| done.map(told).map_err(ApiError::conflict))
}
