//! One request: checked, read, and given to the API, the control API, the page or a trigger.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use hookgate::clock::Clock as _;
use http::header::{CONTENT_TYPE, DATE, HeaderName, SET_COOKIE};
use http::{HeaderValue, Method, Request, Response, StatusCode, request};
use http_body_util::{Either, Full};
use httpdate::fmt_http_date;
use hyper::body::Body as _;
use hyper::body::Incoming;
use tokio::time::Instant;

use super::guard::{self, COOKIE_NAME};
use super::server::{Closed, Serve};
use super::{Access, Reply, read, stream};
use crate::answer::{Answer, ApiError};
use crate::api::{self, Call, Caller};
use crate::control;
use crate::faults::ApiFault;
use crate::hub::Hub;
use crate::page;
use crate::query::Query;
use crate::requests;

/// A body of the API: about 10,000 rows in a batch.
const API_BODY: usize = 8 << 20;
/// A body of a trigger, and of the control API.
const SMALL_BODY: usize = 1 << 20;
/// A snapshot may hold some 100,000 rows.
const SNAPSHOT_BODY: usize = 256 << 20;

impl Serve for Hub {
    async fn serve(
        self: Arc<Self>,
        access: Arc<Access>,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Reply>, Closed> {
        let (head, body) = request.into_parts();
        let checked = guard::check(&access, &head.method, &head.uri, &head.headers);
        let mut response = match checked {
            Err(error) => response(error.into()),
            Ok(()) => routed(&self, &access, peer, &head, body).await?,
        };
        guard::add_headers(response.headers_mut());
        // The end of a rate's window is told in the emulator's time, and a client compares it with
        // this header.
        let now = UNIX_EPOCH + Duration::from_millis(self.clock.unix_millis());
        if let Ok(date) = HeaderValue::from_str(&fmt_http_date(now)) {
            response.headers_mut().insert(DATE, date);
        }
        Ok(response)
    }
}

async fn routed(
    hub: &Arc<Hub>,
    access: &Access,
    peer: SocketAddr,
    head: &request::Parts,
    body: Incoming,
) -> Result<Response<Reply>, Closed> {
    let path = head.uri.path();
    if let Some(below) = below("/api/v1", path) {
        return answered_by_api(hub, head, below, body).await.map(response);
    }
    if let Some(below) = below("/_emulator", path) {
        return Ok(controlled(hub, access, peer, head, below, body).await);
    }
    if let Some(file) = page::file(path, page::EMULATE)
        && head.method == Method::GET
    {
        return Ok(paged(access, head, file));
    }
    Ok(triggered(hub, head, body).await)
}

/// `/api/v1/pages` below `/api/v1` is `pages`.
fn below<'p>(room: &str, path: &'p str) -> Option<&'p str> {
    let rest = path.strip_prefix(room)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/')
    }
}

async fn answered_by_api(
    hub: &Hub,
    head: &request::Parts,
    path: &str,
    body: Incoming,
) -> Result<Answer, Closed> {
    let began = Instant::now();
    let caller = api::identify(hub, &head.headers);
    let fault = match &caller {
        Ok(_) => hub.faults.api(head.method != Method::GET),
        Err(_) => None,
    };
    let mut sent = Bytes::new();
    let answer = match (&caller, fault) {
        (Err(error), _) => Err(error.clone()),
        (Ok(_), Some(ApiFault::Status(429))) => Err(ApiError::rate_limited(
            "a fault asks the client to slow down",
        )),
        (Ok(_), Some(ApiFault::Status(_))) => Err(ApiError::internal("a fault of the server")),
        (Ok(caller), _) => called(hub, caller, head, path, body, &mut sent).await,
    };
    if let Some(ApiFault::Slow(delay)) = fault {
        tokio::time::sleep(delay).await;
    }
    let (mut answer, code) = match answer {
        Ok(answer) => (answer, None),
        Err(error) => (Answer::from(error.clone()), Some(error.code)),
    };
    let caller = caller.ok();
    if let Some(caller) = &caller {
        add_rate(&mut answer, caller);
    }
    let noted = requests::Request {
        number: 0,
        at: hub.clock.iso(),
        method: head.method.to_string(),
        path: head
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        key: caller.as_ref().map(|caller| caller.name.clone()),
        status: answer.status.as_u16(),
        code: code.map(str::to_owned),
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        rate: caller.map(|caller| caller.rate),
        body: requests::Body::new(&sent),
        answer: requests::Body::new(&answer.body),
    };
    hub.live.tell("request", hub.requests.note(noted));
    match fault {
        Some(ApiFault::ClosedAfterWrite) => Err(Closed),
        _ => Ok(answer),
    }
}

async fn called(
    hub: &Hub,
    caller: &Caller,
    head: &request::Parts,
    path: &str,
    body: Incoming,
    sent: &mut Bytes,
) -> Result<Answer, ApiError> {
    caller.within_rate()?;
    let found = api::endpoint(&head.method, path);
    let (endpoint, ids) = found.ok_or_else(|| {
        ApiError::not_found("endpoint", &format!("{} {}", head.method, head.uri.path()))
    })?;
    caller.may(hub, endpoint.scope)?;
    *sent = read(body, API_BODY).await?;
    let query = Query::parse(head.uri.query().unwrap_or_default());
    (endpoint.run)(&Call {
        hub,
        ids,
        query: &query,
        body: sent,
    })
}

fn add_rate(answer: &mut Answer, caller: &Caller) {
    let rate = &caller.rate;
    let numbers = [
        ("x-ratelimit-limit", i64::from(rate.limit)),
        ("x-ratelimit-remaining", i64::from(rate.remaining)),
        ("x-ratelimit-reset", rate.reset),
    ];
    for (name, number) in numbers {
        answer
            .headers
            .insert(HeaderName::from_static(name), HeaderValue::from(number));
    }
}

async fn controlled(
    hub: &Arc<Hub>,
    access: &Access,
    peer: SocketAddr,
    head: &request::Parts,
    path: &str,
    body: Incoming,
) -> Response<Reply> {
    if let Err(error) = guard::check_token(access, &head.headers) {
        return response(error.into());
    }
    if path == "stream" && head.method == Method::GET {
        return stream(&hub.live);
    }
    // Without a token this is loopback; the peer is looked at again, since a snapshot holds
    // secrets.
    if path == "snapshot" && access.token.is_none() && !peer.ip().is_loopback() {
        return response(ApiError::forbidden("a snapshot is for this machine alone").into());
    }
    let most = if path == "snapshot" {
        SNAPSHOT_BODY
    } else {
        SMALL_BODY
    };
    let body = match read(body, most).await {
        Ok(body) => body,
        Err(error) => return response(error.into()),
    };
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let answer = control::answer(hub, &head.method, path, query, body).await;
    response(answer.unwrap_or_else(Answer::from))
}

/// A file of the page. With the token in its address the page gets it as a cookie, and an address
/// without it.
pub(super) fn paged(access: &Access, head: &request::Parts, file: page::File) -> Response<Reply> {
    let query = Query::parse(head.uri.query().unwrap_or_default());
    if let Some(token) = query.text("token").filter(|token| access.is_token(token)) {
        let cookie = format!("{COOKIE_NAME}={token}; Path=/; HttpOnly; SameSite=Strict");
        let mut answer = response(Answer::nothing().with_status(StatusCode::SEE_OTHER));
        let headers = answer.headers_mut();
        headers.insert(http::header::LOCATION, HeaderValue::from_static("/"));
        // A token is a text that a header can carry: the command makes it.
        if let Ok(cookie) = HeaderValue::try_from(cookie) {
            headers.insert(SET_COOKIE, cookie);
        }
        return answer;
    }
    if let Err(error) = guard::check_token(access, &head.headers) {
        return response(error.into());
    }
    let mut answer = Response::new(Either::Left(Full::new(Bytes::from_static(
        file.text.as_bytes(),
    ))));
    let kind = HeaderValue::from_static(file.kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

async fn triggered(hub: &Hub, head: &request::Parts, body: Incoming) -> Response<Reply> {
    let path = head.uri.path();
    let body = match read(body, SMALL_BODY).await {
        Ok(body) => body,
        Err(error) => return response(error.into()),
    };
    let query = head.uri.query().unwrap_or_default();
    match hub
        .triggers
        .call(&head.method, path, query, &head.headers, &body)
    {
        Some(answer) => answer.map(|body| Either::Left(Full::new(body))),
        None => response(ApiError::not_found("path", path).into()),
    }
}

pub(super) fn response(answer: Answer) -> Response<Reply> {
    let mut response = Response::new(Either::Left(Full::new(answer.body)));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    if response.body().size_hint().exact() != Some(0) {
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
    }
    response
}
