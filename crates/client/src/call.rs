//! One call: its attempts, the waits between them, and whether its outcome is known.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::LOCATION;
use http::uri::Authority;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use tokio::time::{Instant, sleep, timeout_at};

use crate::error::{BoxError, Error, ErrorKind, Scope};
use crate::key::without_secrets;
use crate::options::Options;
use crate::rate::{Bucket, Taken, retry_after};
use crate::transport::{Body, NotSent, TooLong, Transport};

/// The longest wait before a repeat, unless the service asks for more.
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// A longer time counts as this one, some 30 years: not every clock can show the end of a longer
/// one.
const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The reason of a [`Wait`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WaitReason {
    /// The requests of this minute, or this call's share of them, are used up; or all requests wait
    /// after a 429.
    Rate,
    /// The request is repeated after a failure.
    Repeat,
}

/// A wait of a call, for the hook [`ClientBuilder::on_wait`](crate::ClientBuilder::on_wait).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Wait<'c> {
    /// The reason.
    pub reason: WaitReason,
    /// The time of the wait. Another wait for the rate may follow.
    pub time: Duration,
    /// Method, path and query.
    pub request: &'c str,
    /// The number of requests that this call has made so far.
    pub attempts: u32,
}

/// Is told of each wait.
#[derive(Clone)]
pub(crate) struct OnWait(pub(crate) Arc<dyn Fn(&Wait<'_>) + Send + Sync>);

impl fmt::Debug for OnWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnWait")
    }
}

/// Which failures are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// Asking again changes nothing: after 429, 5xx, broken connections and times that are over.
    Read,
    /// The same, and 404 after a failure that may have deleted is the end that was asked for.
    Delete,
    /// After 429, and where nothing was sent.
    Write,
    /// As a read, since the caller asked for it, but the outcome may be unknown.
    Asked,
    Never,
}

/// Runs before the first attempt, once the rate permits it. Its failure ends the call, and nothing
/// is sent.
pub(crate) type Before<'c> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'c>>;

/// A request, to be sent once or several times.
#[derive(Debug)]
pub(crate) struct Call<'c> {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    /// For errors and waits.
    pub(crate) name: &'c str,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) repeats: Repeats,
    pub(crate) scope: Option<Scope>,
}

/// What sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way<'c> {
    pub(crate) transport: &'c Transport,
    pub(crate) bucket: Option<&'c Bucket>,
    pub(crate) options: &'c Options,
    pub(crate) on_wait: Option<&'c OnWait>,
}

/// The end of an attempt that has no answer of use.
struct Failed {
    error: Error,
    /// Whether the service may have acted on the request.
    ambiguous: bool,
    /// Whether the service has answered 429.
    slow_down: bool,
    /// The time that the service asks to wait.
    asked: Option<Duration>,
}

impl Call<'_> {
    /// Sends the request until it is answered 2xx, or must not be repeated. `None` is a deletion
    /// that an earlier attempt made.
    pub(crate) async fn send(
        &self,
        way: Way<'_>,
        mut before: Option<Before<'_>>,
    ) -> Result<Option<Response<Bytes>>, Error> {
        let until = Instant::now() + way.options.total_timeout.min(LONGEST);
        let mut attempts = 0;
        let mut ambiguous = false;
        loop {
            let told = |error: Error, attempts| {
                let error = error.of_request(self.name).needs(self.scope);
                error.after(attempts, ambiguous && self.repeats != Repeats::Read)
            };
            let taken = self.take(way, until, attempts).await;
            let taken = taken.map_err(|error| told(error, attempts))?;
            if let Some(before) = before.take() {
                let late = |_| {
                    let message = "the call's total time was over before the write was noted";
                    Err(Error::new(ErrorKind::Timeout, message))
                };
                let ran = timeout_at(until, before).await.unwrap_or_else(late);
                ran.map_err(|error| told(error, attempts))?;
            }
            attempts += 1;
            let failed = match self.attempt(way, until, taken).await {
                Ok(answer) => return Ok(Some(answer)),
                Err(failed) => failed,
            };
            let is_gone = failed.error.kind() == ErrorKind::NotFound;
            if self.repeats == Repeats::Delete && ambiguous && is_gone {
                return Ok(None);
            }
            ambiguous |= failed.ambiguous;
            let error = failed.error.of_request(self.name).needs(self.scope);
            let error = error.after(attempts, ambiguous && self.repeats != Repeats::Read);
            // An answer that is too long would be so again.
            let is_answered_for_good = error.kind() == ErrorKind::Answer
                || !failed.slow_down
                    && error
                        .status()
                        .is_some_and(|status| !status.is_server_error());
            let may_repeat = match self.repeats {
                Repeats::Read | Repeats::Delete | Repeats::Asked => !is_answered_for_good,
                Repeats::Write => !failed.ambiguous && !is_answered_for_good,
                Repeats::Never => false,
            };
            let time = failed.asked.unwrap_or_default();
            let time = time.max(backoff(way.options.backoff, attempts));
            if failed.slow_down
                && let Some(bucket) = way.bucket
            {
                bucket.pause(time);
            }
            let is_last = !may_repeat || attempts > way.options.retries;
            if is_last || Instant::now() + time >= until {
                return Err(error);
            }
            self.tell(way, WaitReason::Repeat, time, attempts);
            sleep(time).await;
        }
    }

    /// Waits for the rate.
    async fn take<'w>(
        &self,
        way: Way<'w>,
        until: Instant,
        attempts: u32,
    ) -> Result<Option<Taken<'w>>, Error> {
        let Some(bucket) = way.bucket else {
            return Ok(None);
        };
        let mut waiting = None;
        loop {
            let time = match bucket.take(way.options.rate_share) {
                Ok(taken) => return Ok(Some(taken)),
                Err(time) => time,
            };
            if Instant::now() + time >= until {
                let message = format!(
                    "the rate allows the next request in {} s, beyond the call's total time",
                    time.as_secs_f64().ceil()
                );
                return Err(Error::new(ErrorKind::Timeout, message));
            }
            waiting.get_or_insert_with(|| bucket.waiting());
            self.tell(way, WaitReason::Rate, time, attempts);
            sleep(time).await;
        }
    }

    fn tell(&self, way: Way<'_>, reason: WaitReason, time: Duration, attempts: u32) {
        if let Some(OnWait(on_wait)) = way.on_wait {
            on_wait(&Wait {
                reason,
                time,
                request: self.name,
                attempts,
            });
        }
    }

    async fn attempt(
        &self,
        way: Way<'_>,
        until: Instant,
        taken: Option<Taken<'_>>,
    ) -> Result<Response<Bytes>, Failed> {
        let (body, read) = Body::new(self.body.clone());
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let own = Instant::now() + way.options.attempt_timeout.min(LONGEST);
        let answered = timeout_at(own.min(until), way.transport.send(request)).await;
        match answered {
            Ok(Ok(answer)) => {
                if let Some(bucket) = way.bucket {
                    bucket.observe(answer.headers());
                }
                drop(taken);
                if answer.status().is_success() {
                    return Ok(answer);
                }
                Err(self.refused(&answer))
            }
            Ok(Err(cause)) => Err(self.broken(cause, &read)),
            Err(_) => {
                let time = way.options.attempt_timeout.as_secs_f64();
                let message = if own <= until {
                    format!("no answer within {time} s")
                } else {
                    "no answer before the call's total time was over".to_owned()
                };
                Err(Failed {
                    error: Error::new(ErrorKind::Timeout, message),
                    ambiguous: self.was_sent(&read),
                    slow_down: false,
                    asked: None,
                })
            }
        }
    }

    fn refused(&self, answer: &Response<Bytes>) -> Failed {
        let status = answer.status();
        let slow_down = status == StatusCode::TOO_MANY_REQUESTS;
        let (code, message) = crate::json::error_of(answer.body());
        let location = answer.headers().get(LOCATION);
        let location = location.map(|location| String::from_utf8_lossy(location.as_bytes()));
        let reason = status.canonical_reason();
        let reason = reason.unwrap_or("no such status is known");
        let message = match (location, message) {
            (Some(to), _) if status.is_redirection() => format!(
                "{reason}, to {to}: no redirect is followed, is the URL that of the service's API?"
            ),
            (_, Some(message)) => message,
            (_, None) => format!("{reason}, without the service's envelope of an error"),
        };
        let code = code.map(|code| without_secrets(&self.headers, &code));
        let message = without_secrets(&self.headers, &message);
        Failed {
            error: Error::answered(status, code, &message),
            // A proxy may have passed the request on, and a workflow that ran may answer any
            // status.
            ambiguous: status.is_server_error()
                || status.is_redirection()
                || status == StatusCode::REQUEST_TIMEOUT
                || matches!(self.repeats, Repeats::Asked | Repeats::Never),
            slow_down,
            asked: retry_after(answer.headers()),
        }
    }

    fn broken(&self, cause: BoxError, read: &AtomicBool) -> Failed {
        if let Some(too_long) = cause.downcast_ref::<TooLong>() {
            return Failed {
                error: Error::new(ErrorKind::Answer, too_long.to_string()),
                ambiguous: true,
                slow_down: false,
                asked: None,
            };
        }
        let ambiguous = !cause.is::<NotSent>() && self.was_sent(read);
        let host = self.uri.authority().map_or("", Authority::as_str);
        let message = if ambiguous {
            format!("the connection to {host} broke before the answer was read")
        } else {
            format!("the request was not sent to {host}")
        };
        Failed {
            error: Error::new(ErrorKind::Connection, message).caused_by(cause),
            ambiguous,
            slow_down: false,
            asked: None,
        }
    }

    /// A service acts on no request whose body is incomplete. A request that has no body may have
    /// arrived.
    fn was_sent(&self, read: &AtomicBool) -> bool {
        self.body.is_empty() || read.load(Ordering::Acquire)
    }
}

/// Between half of the time and all of it, so that clients that failed together do not come back
/// together.
fn backoff(first: Duration, attempts: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(attempts.saturating_sub(1));
    let whole = first.saturating_mul(doubled).min(LONGEST_BACKOFF);
    let half = whole / 2;
    // The hasher's keys are random.
    let part = RandomState::new().build_hasher().finish() % 1024;
    half + half * u32::try_from(part).unwrap_or_default() / 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_up_to_a_limit_and_is_at_least_its_half() {
        let second = Duration::from_secs(1);
        for (attempts, whole) in [(1, 1), (2, 2), (3, 4), (6, 30), (99, 30)] {
            let whole = second * whole;
            for _ in 0..50 {
                let time = backoff(second, attempts);
                assert!(time >= whole / 2 && time <= whole, "{attempts}: {time:?}");
            }
        }
        assert_eq!(backoff(Duration::ZERO, 5), Duration::ZERO);
    }
}
