//! The service's request rate: one bucket for all clones of a client, filled as the headers of
//! answers say.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};
use httpdate::parse_http_date;
use tokio::time::Instant;

/// The length of a window. Limits are requests a minute.
const WINDOW: Duration = Duration::from_secs(60);
/// The limit of the Standard tier, until an answer says another.
const FIRST_LIMIT: u32 = 60;
/// Times of the service are whole seconds: a window that ends this much later is another one.
const SLACK: Duration = Duration::from_secs(2);
/// An answer that asks to wait longer holds calls back for this time.
const LONGEST_ASKED: Duration = Duration::from_secs(3_600);
/// A number below this is one of seconds to wait, and no Unix time.
const LEAST_UNIX: u64 = 1_000_000_000;

/// The request rate, from [`Client::rate`](crate::Client::rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The limit of requests in a minute, from the newest answer; 60 before the first answer.
    pub limit: u32,
    /// The requests that are left in this minute.
    pub remaining: u32,
    /// The time until the minute is over.
    pub resets_in: Duration,
    /// The number of calls that wait for the rate.
    pub waiting: u32,
}

/// The bucket.
#[derive(Debug)]
pub(crate) struct Bucket(Mutex<State>);

#[derive(Debug)]
struct State {
    limit: u32,
    tokens: u32,
    /// Requests without an answer yet.
    under_way: u32,
    window_ends: Instant,
    /// Set by 429: no request goes out before.
    paused_until: Option<Instant>,
    waiting: u32,
    /// Whether an answer has told the limit yet.
    told: bool,
}

/// Counts a request until it is answered or dropped.
#[derive(Debug)]
pub(crate) struct Taken<'b>(&'b Bucket);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.under_way = state.under_way.saturating_sub(1);
    }
}

/// Counts a waiting call, also one that is dropped while it waits.
pub(crate) struct Waiting<'b>(&'b Bucket);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting = state.waiting.saturating_sub(1);
    }
}

impl Bucket {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            limit: FIRST_LIMIT,
            tokens: FIRST_LIMIT,
            under_way: 0,
            window_ends: Instant::now() + WINDOW,
            paused_until: None,
            waiting: 0,
            told: false,
        }))
    }

    /// Takes a token, or returns the time to wait before the next try. `share` of the limit is for
    /// this caller.
    pub(crate) fn take(&self, share: f64) -> Result<Taken<'_>, Duration> {
        let now = Instant::now();
        let mut state = self.state();
        state.turn(now);
        if let Some(until) = state.paused_until {
            return Err(until - now);
        }
        let reserve = reserve(state.limit, share);
        if state.tokens <= reserve {
            return Err(state.window_ends.saturating_duration_since(now));
        }
        state.tokens -= 1;
        state.under_way += 1;
        Ok(Taken(self))
    }

    pub(crate) fn waiting(&self) -> Waiting<'_> {
        self.state().waiting += 1;
        Waiting(self)
    }

    /// Learns from the headers of an answer, while its request is still counted as under way.
    pub(crate) fn observe(&self, headers: &HeaderMap) {
        let Some(seen) = Seen::of(headers) else {
            return;
        };
        let now = Instant::now();
        let ends = now + seen.resets_in;
        let mut state = self.state();
        state.turn(now);
        let is_new = !state.told || state.limit != seen.limit || ends > state.window_ends + SLACK;
        state.tokens = if is_new {
            // The answer may not count the requests that are still under way.
            seen.remaining
                .saturating_sub(state.under_way.saturating_sub(1))
        } else {
            // An answer that was overtaken by another says more than is left.
            state.tokens.min(seen.remaining)
        };
        state.told = true;
        state.limit = seen.limit;
        state.window_ends = ends;
    }

    /// Holds every request back for this time, after 429.
    pub(crate) fn pause(&self, time: Duration) {
        let until = Instant::now() + time;
        let mut state = self.state();
        state.paused_until = Some(state.paused_until.map_or(until, |other| other.max(until)));
    }

    pub(crate) fn rate(&self) -> Rate {
        let now = Instant::now();
        let mut state = self.state();
        state.turn(now);
        Rate {
            limit: state.limit,
            remaining: state.tokens,
            resets_in: state.window_ends.saturating_duration_since(now),
            waiting: state.waiting,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn turn(&mut self, now: Instant) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
        if self.window_ends <= now {
            self.tokens = self.limit;
            self.window_ends = now + WINDOW;
        }
    }
}

/// The tokens that are left to others; never all of them.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and the limit"
)]
fn reserve(limit: u32, share: f64) -> u32 {
    let reserve = (f64::from(limit) * (1.0 - share)).ceil() as u32;
    reserve.min(limit.saturating_sub(1))
}

/// The numbers of an answer's headers.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    limit: u32,
    remaining: u32,
    resets_in: Duration,
}

impl Seen {
    fn of(headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<u64>().ok();
        let limit = u32::try_from(number("x-ratelimit-limit")?).ok()?;
        let remaining = u32::try_from(number("x-ratelimit-remaining")?).ok()?;
        let reset = number("x-ratelimit-reset");
        let resets_in = match reset {
            Some(seconds) if seconds < LEAST_UNIX => Duration::from_secs(seconds),
            Some(unix) => until(unix, headers),
            None => WINDOW,
        };
        // A clock that is wrong makes no call wait longer than a minute.
        (limit > 0).then_some(Self {
            limit,
            remaining,
            resets_in: resets_in.min(WINDOW),
        })
    }
}

/// Returns the time that an answer asks to wait, from `Retry-After`: seconds, or the end of the
/// wait as a date. Some gateways write the end as Unix seconds.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let asked = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let is_number = !asked.is_empty() && asked.bytes().all(|byte| byte.is_ascii_digit());
    let time = if is_number {
        // A number with too many digits is a long time too.
        match asked.parse().unwrap_or(u64::MAX) {
            seconds if seconds < LEAST_UNIX => Duration::from_secs(seconds),
            unix => until(unix, headers),
        }
    } else {
        let end = parse_http_date(asked).ok()?;
        end.duration_since(service_time(headers))
            .unwrap_or_default()
    };
    Some(time.min(LONGEST_ASKED))
}

/// The time from the answer on until this Unix time.
fn until(unix: u64, headers: &HeaderMap) -> Duration {
    let now = service_time(headers).duration_since(UNIX_EPOCH);
    Duration::from_secs(unix.saturating_sub(now.unwrap_or_default().as_secs()))
}

/// The answer's `Date`, the service's own clock, so that ours may be wrong.
fn service_time(headers: &HeaderMap) -> SystemTime {
    let date = headers.get(DATE).and_then(|date| date.to_str().ok());
    let date = date.and_then(|date| parse_http_date(date).ok());
    date.unwrap_or_else(SystemTime::now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds_now() -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.unwrap().as_secs()
    }

    fn headers(limit: u32, remaining: u32, reset: u64) -> HeaderMap {
        let numbers = [
            ("x-ratelimit-limit", u64::from(limit)),
            ("x-ratelimit-remaining", u64::from(remaining)),
            ("x-ratelimit-reset", reset),
        ];
        let pairs = numbers.map(|(name, number)| (name.parse().unwrap(), number.into()));
        pairs.into_iter().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_answer_tells_the_limit_and_the_others_lower_what_is_left() {
        let bucket = Bucket::new();
        assert_eq!((bucket.rate().limit, bucket.rate().remaining), (60, 60));
        // The second is under way, and the service may not have counted it.
        let (_first, _second) = (bucket.take(1.0).unwrap(), bucket.take(1.0).unwrap());
        bucket.observe(&headers(1000, 999, seconds_now() + 60));
        assert_eq!((bucket.rate().limit, bucket.rate().remaining), (1000, 998));
        // Another process uses the key too.
        bucket.observe(&headers(1000, 500, seconds_now() + 60));
        assert_eq!(bucket.rate().remaining, 500);
        // An answer that was overtaken.
        bucket.observe(&headers(1000, 700, seconds_now() + 60));
        assert_eq!(bucket.rate().remaining, 500);
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_that_begins_earlier_than_expected_is_taken_as_new() {
        let bucket = Bucket::new();
        let taken = bucket.take(1.0).unwrap();
        bucket.observe(&headers(60, 2, 30));
        drop(taken);
        assert_eq!(bucket.rate().remaining, 2);
        let _taken = bucket.take(1.0).unwrap();
        bucket.observe(&headers(60, 59, 60));
        assert_eq!(bucket.rate().remaining, 59);
    }

    #[tokio::test(start_paused = true)]
    async fn an_empty_bucket_waits_for_the_reset_and_no_longer_than_a_minute() {
        let bucket = Bucket::new();
        drop(bucket.take(1.0).unwrap());
        bucket.observe(&headers(60, 0, 7));
        assert_eq!(bucket.take(1.0).unwrap_err(), Duration::from_secs(7));
        bucket.observe(&headers(60, 0, seconds_now() + 9_999));
        assert_eq!(bucket.take(1.0).unwrap_err(), WINDOW);
        tokio::time::advance(WINDOW).await;
        drop(bucket.take(1.0).unwrap());
        assert_eq!(bucket.rate().remaining, 59);
    }

    #[tokio::test(start_paused = true)]
    async fn the_services_own_clock_counts_where_it_is_told() {
        let bucket = Bucket::new();
        let mut headers = headers(60, 0, 1_784_284_560 + 20);
        headers.insert(DATE, "Fri, 17 Jul 2026 10:36:00 GMT".parse().unwrap());
        bucket.observe(&headers);
        assert_eq!(bucket.take(1.0).unwrap_err(), Duration::from_secs(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_share_leaves_the_rest_to_others_and_takes_one_at_least() {
        let bucket = Bucket::new();
        for _ in 0..30 {
            drop(bucket.take(0.5).unwrap());
        }
        assert_eq!(bucket.take(0.5).unwrap_err(), WINDOW);
        assert!(bucket.take(1.0).is_ok());
        let bucket = Bucket::new();
        assert!(bucket.take(0.0).is_ok());
        assert_eq!(bucket.take(0.0).unwrap_err(), WINDOW);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_holds_everybody_back_and_the_longer_one_counts() {
        let bucket = Bucket::new();
        bucket.pause(Duration::from_secs(4));
        bucket.pause(Duration::from_secs(2));
        assert_eq!(bucket.take(1.0).unwrap_err(), Duration::from_secs(4));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert!(bucket.take(1.0).is_ok());
    }

    #[test]
    fn headers_that_say_nothing_change_nothing() {
        assert_eq!(Seen::of(&HeaderMap::new()), None);
        assert_eq!(Seen::of(&headers(0, 0, 0)), None);
        let mut odd = headers(60, 1, 1);
        odd.insert("x-ratelimit-limit", "many".parse().unwrap());
        assert_eq!(Seen::of(&odd), None);
    }
}
