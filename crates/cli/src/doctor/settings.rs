//! Checks of the settings by themselves. The rules are those of `ReceiverBuilder::build`: each
//! check builds a receiver with the settings that it is about, and describes the result.

use std::time::Duration;

use hookgate::{
    ConfigError, ConfigErrorKind, KeyRing, MemoryStore, Receiver, ReceiverBuilder, Secret,
    dedupe::{Capacity, RetrySchedule},
    verify::Window,
};
use hookgate_testing::DeliveryLog;

use super::args::Doctor;
use super::check::{Check, Verdict};
use crate::durations::seconds;
use crate::secrets::{SecretArgs, advice, reason};

/// The part of the budget that one call of the store may take. A shorter lease can have ended when
/// the store answers that it is granted.
const STORE_CALL: Duration = Duration::from_secs(1);

/// The secrets, each by itself, and the ring that they form together. `None` where the ring is not
/// complete, since a part of it would refuse authentic deliveries as forged.
pub(super) fn secrets(given: &SecretArgs) -> (Vec<Check>, Option<KeyRing>) {
    let mut checks = Vec::new();
    let mut ring: Option<KeyRing> = None;
    let mut whole = true;
    for (name, secret) in given.given() {
        let check = format!("secret {name}");
        let secret = match secret {
            Ok(secret) => secret,
            Err(error) => {
                let says = reason(&error);
                checks.push(Check::new(check, Verdict::Bad, says, advice(error.kind())));
                whole = false;
                continue;
            }
        };
        let joined = match ring.take() {
            None => KeyRing::named(&name, secret),
            Some(ring) => ring.with_key(&name, secret),
        };
        match joined {
            Ok(joined) => {
                checks.push(Check::ok(check, "looks like a secret of a subscription"));
                ring = Some(joined);
            }
            Err(error) => {
                let says = error.to_string();
                let advice = "give each live secret once, four at most";
                checks.push(Check::new(check, Verdict::Bad, says, advice));
                return (checks, None);
            }
        }
    }
    if checks.is_empty() {
        checks.push(Check::new(
            "secret",
            Verdict::NotMeasured,
            "no secret is given",
            "set WEBHOOK_SECRET, or use --secret-env or --secret-file",
        ));
    }
    (checks, ring.filter(|_| whole))
}

pub(super) fn all(doctor: &Doctor, log: Option<&DeliveryLog>) -> Vec<Check> {
    let checks = [
        retention(doctor),
        lease(doctor),
        budget(doctor),
        deadlines(doctor),
        body(doctor, log),
        Ok(capacity(doctor)),
    ];
    let checks = checks.map(|check| check.unwrap_or_else(|refused| refused));
    checks.into()
}

pub(super) fn window(doctor: &Doctor) -> Window {
    Window::default()
        .with_past(doctor.window_past)
        .with_ahead(doctor.window_ahead)
}

/// Builds a receiver that differs from the default in the settings that `set` changes. Its secret
/// is made up.
///
/// # Errors
/// The check of a receiver that can't be built, with the methods that set this.
fn built(
    check: &str,
    option: &str,
    set: impl FnOnce(ReceiverBuilder) -> ReceiverBuilder,
) -> Result<(), Check> {
    let mut builder = Receiver::builder().store(MemoryStore::default());
    if let Ok(secret) = Secret::new("whsec_made_up_to_check_settings") {
        builder = builder.secret(secret);
    }
    let built = set(builder).build();
    built
        .map(drop)
        .map_err(|error| refused(check, option, &error))
}

/// The check for a receiver that could not be built: the reason, and the advice.
fn refused(check: &str, option: &str, error: &ConfigError) -> Check {
    let advice = match error.kind() {
        ConfigErrorKind::RetentionTooShort { needed, .. } => {
            format!("remember for {} or longer: {option}", seconds(needed))
        }
        ConfigErrorKind::OutOfRange {
            setting,
            least,
            most,
        } => format!(
            "set {setting} longer than {} and at most {}: {option}",
            seconds(least),
            seconds(most)
        ),
        ConfigErrorKind::Zero { setting } => format!("set {setting} to 1 or more: {option}"),
        _ => format!("change {option}"),
    };
    Check::new(check, Verdict::Bad, error.to_string(), advice)
}

fn retention(doctor: &Doctor) -> Result<Check, Check> {
    let window = window(doctor);
    built("retention", ".retention(…)", |builder| {
        builder.window(window).retention(doctor.retention)
    })?;
    let least = RetrySchedule::default().minimum_retention(&window);
    let (held, least) = (seconds(doctor.retention), seconds(least));
    let says = format!("{held} cover the sender's retries, and its window: {least}");
    Ok(Check::ok("retention", says))
}

fn lease(doctor: &Doctor) -> Result<Check, Check> {
    built("lease", ".lease(…)", |builder| {
        builder.lease(doctor.lease)
    })?;
    let held = seconds(doctor.lease);
    if doctor.lease <= STORE_CALL {
        return Ok(Check::new(
            "lease",
            Verdict::Warn,
            format!("{held} may end before a slow store has answered, which refuses the delivery"),
            format!(
                "longer than {}, or keep the default of 30 s: .lease(…)",
                seconds(STORE_CALL)
            ),
        ));
    }
    let first_retry = RetrySchedule::default().first_wait().unwrap_or_default();
    Ok(Check::ok(
        "lease",
        format!(
            "{held}: what is lost with its process can be claimed again {} before the first retry",
            seconds(first_retry.saturating_sub(doctor.lease))
        ),
    ))
}

fn budget(doctor: &Doctor) -> Result<Check, Check> {
    built("budget", ".answer_within(…)", |builder| {
        builder.answer_within(doctor.budget)
    })?;
    let limit = RetrySchedule::default().attempt_timeout();
    let left = limit.saturating_sub(doctor.budget);
    if left.is_zero() {
        return Ok(Check::new(
            "budget",
            Verdict::Warn,
            format!(
                "{}: the sender stops waiting at the moment at which the answer is sent",
                seconds(doctor.budget)
            ),
            "leave half a second for the network: .answer_within(…)",
        ));
    }
    let (budget, limit, left) = (seconds(doctor.budget), seconds(limit), seconds(left));
    Ok(Check::ok(
        "budget",
        format!("{budget} of the {limit} that the sender waits: {left} for the network"),
    ))
}

fn deadlines(doctor: &Doctor) -> Result<Check, Check> {
    built(
        "deadlines",
        ".body_deadline(…), .run_limit(…)",
        |builder| {
            let builder = builder.body_deadline(doctor.body_deadline);
            builder.run_limit(doctor.run_limit)
        },
    )?;
    let body = seconds(doctor.body_deadline);
    if doctor.body_deadline >= doctor.budget {
        return Ok(Check::new(
            "deadlines",
            Verdict::Warn,
            format!(
                "a body may take {body}, and the whole answer {}",
                seconds(doctor.budget)
            ),
            "leave the handler a part of the budget: .body_deadline(…)",
        ));
    }
    Ok(Check::ok(
        "deadlines",
        format!("{body} for a body, {} for a run", seconds(doctor.run_limit)),
    ))
}

fn body(doctor: &Doctor, log: Option<&DeliveryLog>) -> Result<Check, Check> {
    built("limits", ".max_body(…), .max_runs(…)", |builder| {
        builder.max_body(doctor.max_body).max_runs(doctor.max_runs)
    })?;
    let limit = bytes(doctor.max_body);
    let at_once = bytes(doctor.max_body.saturating_mul(doctor.max_runs));
    let limits = format!(
        "bodies up to {limit}; {} runs hold {at_once} of them at most",
        doctor.max_runs
    );
    let bodies = log.into_iter().flat_map(DeliveryLog::deliveries);
    let bodies: Vec<_> = bodies
        .filter_map(|it| Some(it.body.as_ref()?.len()))
        .collect();
    let Some(longest) = bodies.iter().copied().max() else {
        return Ok(Check::ok("limits", limits));
    };
    let seen = format!(
        "{limits}; the longest of {} in the log has {}",
        bodies.len(),
        bytes(longest)
    );
    if longest > doctor.max_body {
        return Ok(Check::new(
            "limits",
            Verdict::Bad,
            seen,
            format!("a delivery like that is refused with 413: .max_body({longest}) or more"),
        ));
    }
    if longest > doctor.max_body / 2 {
        return Ok(Check::new(
            "limits",
            Verdict::Warn,
            seen,
            "rows grow: leave room for twice the longest: .max_body(…)",
        ));
    }
    Ok(Check::ok("limits", seen))
}

fn capacity(doctor: &Doctor) -> Check {
    let capacity = Capacity::new(doctor.capacity);
    let memory = |records: usize| {
        let memory = records.saturating_mul(MemoryStore::BYTES_PER_RECORD);
        format!("{} in a MemoryStore", bytes(memory))
    };
    let held = format!(
        "{} events, about {}",
        capacity.records(),
        memory(capacity.records())
    );
    let Some(rate) = doctor.rate else {
        return Check::new(
            "capacity",
            Verdict::NotMeasured,
            held,
            "give the number of events that you expect in a second: --rate",
        );
    };
    let least = RetrySchedule::default().minimum_retention(&window(doctor));
    let retention = doctor.retention.max(least);
    let needed = Capacity::for_rate(rate, retention).records();
    let wanted = format!(
        "{rate} events a second for {} are {needed}, about {}: .store(MemoryStore::new({needed}))",
        seconds(retention),
        memory(needed)
    );
    let lasts = capacity.time_covered(rate);
    let reaches = seconds(Duration::from_secs(lasts.as_secs()));
    if lasts < least {
        return Check::new(
            "capacity",
            Verdict::Bad,
            format!("{held}: forgotten after {reaches}, while the sender still retries"),
            wanted,
        );
    }
    if lasts < retention {
        return Check::new(
            "capacity",
            Verdict::Warn,
            format!(
                "{held}: forgotten after {reaches}, which covers the retries, not the retention"
            ),
            wanted,
        );
    }
    Check::ok(
        "capacity",
        format!("{held}: {rate} events a second need {needed}"),
    )
}

/// `1 MiB`, `90.6 MiB`, `512 bytes`.
fn bytes(count: usize) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1_024 {
        return format!("{count} bytes");
    }
    #[allow(clippy::cast_precision_loss)] // one digit behind the point is shown
    let mut number = count as f64 / 1_024.0;
    let mut unit = UNITS[0];
    for larger in &UNITS[1..] {
        if number < 1_024.0 {
            break;
        }
        number /= 1_024.0;
        unit = larger;
    }
    let text = format!("{number:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_shown_as_they_are_said() {
        for (count, shown) in [
            (0, "0 bytes"),
            (1_023, "1023 bytes"),
            (1 << 20, "1 MiB"),
            (95_000_000, "90.6 MiB"),
            (1 << 30, "1 GiB"),
            (usize::MAX, "16777216 TiB"),
        ] {
            assert_eq!(super::bytes(count), shown);
        }
    }
}
