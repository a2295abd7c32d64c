//! The offset of the clock: by a log of deliveries, or by the time that another machine reports.

use bytes::Bytes;
use hookgate::{
    KeyRing, Verifier,
    clock::{Clock, SystemClock},
    verify::Window,
};
use hookgate_testing::{ClockOffset, DeliveryLog, Transport};
use http::header::DATE;
use http::{Method, Request, Uri};

use super::args::Doctor;
use super::check::{Check, Verdict};
use super::settings;
use crate::fault::Fault;
use crate::http_client::{self, HttpClient};
use crate::interrupt;

/// From this number on a median is reliable: fewer deliveries may all have been late.
const MANY: usize = 20;

/// The offset by the header `Date`, with the name of the host; `None` where the answer had no such
/// header.
pub(super) type ByUrl = (String, Option<ClockOffset>);

const BY_URL: &str = "clock by URL";

/// The check where the host has not answered.
pub(super) fn unreachable(fault: &Fault) -> Check {
    let advice = fault.advice().unwrap_or_default();
    Check::new(BY_URL, Verdict::NotMeasured, fault.message(), advice)
}

pub(super) fn by_url(target: &Uri) -> Result<ByUrl, Fault> {
    let host = target
        .authority()
        .map(ToString::to_string)
        .unwrap_or_default();
    interrupt::block_on(async {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::HEAD;
        *request.uri_mut() = target.clone();
        let client = HttpClient::new()?;
        let asked = SystemClock.now();
        let answer = client.deliver(request).await;
        let answered = SystemClock.now();
        let answer = answer.map_err(|error| http_client::unreachable(target, &error))?;
        let date = answer
            .headers()
            .get(DATE)
            .and_then(|date| date.to_str().ok());
        let offset = date.and_then(|date| ClockOffset::of_date(date, asked, answered));
        Ok((host, offset))
    })
}

pub(super) fn by_date(doctor: &Doctor, by_url: Option<ByUrl>) -> Check {
    const CHECK: &str = BY_URL;
    let (host, offset) = match by_url {
        None => {
            return Check::new(
                CHECK,
                Verdict::NotMeasured,
                "no URL is given",
                "compare this machine's clock with another's: --url https://…",
            );
        }
        Some((host, None)) => {
            return Check::new(
                CHECK,
                Verdict::NotMeasured,
                format!("{host} has answered without a Date header"),
                "give a URL whose answer has a Date header",
            );
        }
        Some((host, Some(offset))) => (host, offset),
    };
    let says = format!(
        "this machine's clock is {} that of {host}",
        between(offset.least, offset.most)
    );
    judged(CHECK, &offset, &settings::window(doctor), says)
}

pub(super) fn by_log(doctor: &Doctor, log: Option<&DeliveryLog>, ring: Option<KeyRing>) -> Check {
    const CHECK: &str = "clock by log";
    let Some(log) = log else {
        return Check::new(
            CHECK,
            Verdict::NotMeasured,
            "no log is given",
            "record deliveries, and give their log: --log",
        );
    };
    let with_keys = ring.is_some();
    let offset = match ring {
        Some(ring) => ClockOffset::of_log(log, &Verifier::new(ring)),
        None => ClockOffset::as_answered(log),
    };
    let lines = log.deliveries().len();
    let Some(offset) = offset else {
        let (says, advice) = if with_keys {
            (
                "authentic under the secret, with a body",
                "is it the right secret? a receiver that finds a delivery stale reads no body, and logs none",
            )
        } else {
            (
                "authentic by the receiver's own verdict",
                "give the secret, so that they can be verified here",
            )
        };
        let says = format!("none of {lines} deliveries is {says}");
        return Check::new(CHECK, Verdict::NotMeasured, says, advice);
    };
    let by = if with_keys {
        ""
    } else {
        " by the receiver's own verdict"
    };
    let says = format!(
        "the receiver's clock is {} the sender's: the median of {} authentic deliveries{by}, of {lines}, which lie from {} to {} s",
        about(offset.median),
        offset.measurements,
        offset.least,
        offset.most,
    );
    let mut check = judged(CHECK, &offset, &settings::window(doctor), says);
    if offset.measurements < MANY && check.verdict == Verdict::Ok {
        let advice = format!("the result is reliable with {MANY} deliveries or more");
        check.advice = Some(advice);
    }
    check
}

/// Whether a delivery that is signed now is accepted now; and whether it would be accepted with a
/// tenth of the window.
fn judged(check: &str, offset: &ClockOffset, window: &Window, says: String) -> Check {
    const ADVICE: &str = "set the clock by NTP: timedatectl set-ntp true, or your platform's way";
    let tenth = Window::default()
        .with_past(window.past() / 10)
        .with_ahead(window.ahead() / 10);
    if !offset.is_within(window) {
        let says = format!("{says}: beyond the window, so every delivery is refused");
        return Check::new(check, Verdict::Bad, says, ADVICE);
    }
    if !offset.is_within(&tenth) {
        let says = format!("{says}: more than a tenth of the window");
        return Check::new(check, Verdict::Warn, says, ADVICE);
    }
    Check::ok(check, says)
}

fn about(seconds: i64) -> String {
    match seconds {
        0 => "level with".into(),
        1.. => format!("{seconds} s ahead of"),
        _ => format!("{} s behind", seconds.unsigned_abs()),
    }
}

fn between(least: i64, most: i64) -> String {
    if least <= 0 && most >= 0 {
        return format!(
            "within {} s of",
            most.unsigned_abs().max(least.unsigned_abs())
        );
    }
    if least > 0 {
        return format!("{least} to {most} s ahead of");
    }
    format!(
        "{} to {} s behind",
        most.unsigned_abs(),
        least.unsigned_abs()
    )
}
