//! `hookgate log list`: a line for each delivery.

use std::convert::Infallible;
use std::process::ExitCode;

use hookgate::clock::{Clock, SystemClock, UnixSeconds};
use hookgate_record::LoggedDelivery;
use hookgate_testing::iso8601;
use hookgate_testing::log::UnverifiedHead;
use serde::Serialize;

use super::source::{Next, Source};
use crate::delivery_input::time;
use crate::durations;
use crate::event_types::is_of_type;
use crate::fault::{Fault, note};
use crate::listen::item::Verdict;
use crate::out::Out;
use crate::printable::{claimed_subscription, short_reason, table_row};

/// List the deliveries: line, time, status, outcome, type, id and reason.
///
/// Of a refused delivery also the subscription that it claims to come from. Any client can send any
/// id: it proves nothing.
///
/// Several values of one option are alternatives; several options have to fit all.
#[derive(clap::Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    source: Source,
    /// Only the delivery at this line
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    line: Option<u64>,
    /// Only events of this type: `row.created`, or `row.*` for all that begin so
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Only deliveries with this outcome: handled, not_authentic, replayed; hung_up if there was no
    /// answer. Or all of a verdict of `listen`: done, again, failed, refused
    #[arg(long, value_name = "OUTCOME")]
    outcome: Vec<String>,
    /// Only deliveries that were answered with this status: `204`, or `5xx` for all of that class
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Vec<String>,
    /// Only deliveries of this event
    #[arg(long, value_name = "ID")]
    id: Vec<String>,
    /// Only deliveries that arrived at this time or later: Unix seconds, ISO 8601, or an age (`2h`,
    /// `1d`)
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<UnixSeconds>,
    /// Only deliveries that arrived before this time: Unix seconds, ISO 8601, or an age (`2h`,
    /// `1d`)
    #[arg(long, value_name = "TIME", value_parser = since)]
    until: Option<UnixSeconds>,
    /// Only deliveries with this text in body, headers, target, outcome or reason, in any case
    #[arg(long, value_name = "TEXT", value_parser = lower)]
    search: Option<String>,
    /// End after this number of deliveries
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
    /// Go on with the deliveries that are recorded from now on, until Ctrl-C. A rotated log is
    /// followed into its new file
    #[arg(long, conflicts_with = "rotated")]
    follow: bool,
}

pub(crate) fn run(args: &ListArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    // Not before the log is open: above an error the header would have no rows.
    let mut is_headed = out.is_json();
    let (mut read, mut taken) = (false, 0);
    args.source.each(args.follow, |line, delivery| {
        read = true;
        if !is_headed {
            out.line(&row(&HEAD))?;
            is_headed = true;
        }
        let listed = Listed::of(line, &delivery, args.source.head_of(&delivery));
        if args.takes(&listed, &delivery) {
            let text = listed.text();
            out.say(&text, &listed)?;
            taken += 1;
        }
        if args.follow {
            out.flush()?;
        }
        let is_last = args.line.is_some_and(|last| line >= last);
        Ok(match is_last || args.limit == Some(taken) {
            true => Next::Enough,
            false => Next::More,
        })
    })?;
    if !is_headed {
        out.line(&row(&HEAD))?;
    }
    if read && taken == 0 {
        out.flush()?;
        note("no delivery of this log fits these options");
    }
    Ok(ExitCode::SUCCESS)
}

const HEAD: [&str; 7] = ["LINE", "TIME", "STATUS", "OUTCOME", "TYPE", "ID", "REASON"];

impl ListArgs {
    fn takes(&self, listed: &Listed, delivery: &LoggedDelivery) -> bool {
        let any = |wanted: &[String], is: &dyn Fn(&str) -> bool| {
            wanted.is_empty() || wanted.iter().any(|wanted| is(wanted))
        };
        let of_type = |wanted: &str| {
            let event_type = listed.event_type.as_deref().unwrap_or_default();
            is_of_type(wanted, event_type)
        };
        let has_status = |wanted: &str| {
            let status = listed.status.map(|status| status.to_string());
            status.is_some_and(|status| status.starts_with(wanted.trim_end_matches('x')))
        };
        self.line.is_none_or(|line| line == listed.line)
            && any(&self.types, &of_type)
            && any(&self.outcome, &|wanted| {
                let outcome = listed.outcome.as_deref();
                outcome.is_some_and(|outcome| {
                    outcome == wanted || Verdict::of(outcome).word() == wanted
                })
            })
            && any(&self.status, &has_status)
            && any(&self.id, &|wanted| {
                listed.event_id.as_deref() == Some(wanted)
            })
            && self.since.is_none_or(|since| delivery.received_at >= since)
            && self.until.is_none_or(|until| delivery.received_at < until)
            && self
                .search
                .as_ref()
                .is_none_or(|text| has_text(delivery, text))
    }
}

fn lower(text: &str) -> Result<String, Infallible> {
    Ok(text.to_lowercase())
}

/// Returns whether a delivery has this text, which is in lower case.
fn has_text(delivery: &LoggedDelivery, wanted: &str) -> bool {
    let has = |text: &[u8]| {
        String::from_utf8_lossy(text)
            .to_lowercase()
            .contains(wanted)
    };
    let mut headers = delivery.headers.iter();
    let answer = delivery.answer.as_ref();
    delivery.body.as_ref().is_some_and(|body| has(body))
        || headers.any(|(name, value)| has(name.as_bytes()) || has(value))
        || has(delivery.target.as_bytes())
        || answer.is_some_and(|answer| {
            let reason = answer.reason.as_deref().unwrap_or_default();
            let body = answer.body.as_deref().unwrap_or_default();
            has(answer.outcome.as_bytes()) || has(reason.as_bytes()) || has(body)
        })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    line: u64,
    received_at: String,
    event_type: Option<String>,
    event_id: Option<String>,
    status: Option<u16>,
    outcome: Option<String>,
    reason: Option<String>,
    /// Unproven: any client can send any id.
    claimed_subscription: Option<String>,
    attempt: Option<u32>,
    elapsed_ms: Option<f64>,
    body_bytes: Option<usize>,
    verifiable: bool,
}

impl Listed {
    fn of(line: u64, delivery: &LoggedDelivery, head: UnverifiedHead) -> Self {
        let answer = delivery.answer.as_ref();
        let hung_up = delivery.hung_up_after.map(|_| "hung_up".to_owned());
        let elapsed = answer
            .map(|answer| answer.elapsed)
            .or(delivery.hung_up_after);
        Self {
            line,
            received_at: iso8601(delivery.received_at),
            event_type: head.event_type,
            event_id: head.event_id,
            status: answer.map(|answer| answer.status),
            outcome: answer.map(|answer| answer.outcome.clone()).or(hung_up),
            reason: answer.and_then(|answer| answer.reason.clone()),
            claimed_subscription: answer.and_then(|answer| answer.claimed_subscription.clone()),
            attempt: answer.and_then(|answer| answer.attempt),
            elapsed_ms: elapsed.map(durations::millis),
            body_bytes: delivery.body.as_ref().map(bytes::Bytes::len),
            verifiable: head.is_verifiable,
        }
    }

    fn text(&self) -> String {
        let mut reason = short_reason(self.reason.as_deref().unwrap_or_default()).to_owned();
        if let Some(id) = &self.claimed_subscription {
            reason.push_str(&claimed_subscription(id));
        }
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
        row(&[
            &self.line.to_string(),
            &self.received_at,
            &or_none(&self.status.map(|status| status.to_string())),
            &or_none(&self.outcome),
            &or_none(&self.event_type),
            &or_none(&self.event_id),
            &reason,
        ])
    }
}

fn row(cells: &[&str; 7]) -> String {
    const WIDTHS: [usize; 7] = [5, 20, 6, 18, 14, 16, 0];
    table_row(cells, WIDTHS)
}

fn status(text: &str) -> Result<String, String> {
    let digits = text.trim_end_matches('x');
    let is_one = text.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_one && !digits.is_empty() {
        Ok(text.to_owned())
    } else {
        Err("write a status, 204, or a class, 5xx".into())
    }
}

fn since(text: &str) -> Result<UnixSeconds, String> {
    if let Ok(time) = time(text) {
        return Ok(time);
    }
    let ago = durations::parse(text).map_err(|_| {
        "write Unix seconds, 1763690000, ISO 8601 with a zone, 2025-11-21T01:53:20Z, or how long ago, 2h".to_owned()
    })?;
    let ago = i64::try_from(ago.as_secs()).unwrap_or(i64::MAX);
    Ok(UnixSeconds::new(
        SystemClock.now().as_i64().saturating_sub(ago),
    ))
}
