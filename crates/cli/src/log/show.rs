//! `hookgate log show` and `curl`: one delivery.

use std::process::ExitCode;

use hookgate_record::LoggedDelivery;
use hookgate_testing::iso8601;
use hookgate_testing::log::LoggedDeliveryExt;
use http::uri::Authority;
use serde_json::Value;

use super::source::{One, Source};
use crate::durations;
use crate::fault::{Class, Fault, warn};
use crate::listen::pretty;
use crate::out::Out;
use crate::printable::{printable, printable_bytes};

/// Show one delivery: head, answer with its body where that is recorded, and body.
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    which: One,
    /// Print the body alone, byte for byte
    #[arg(long)]
    raw: bool,
}

/// Print a curl command that sends one delivery again, with the same body byte for byte and the
/// recorded headers.
///
/// For sh, bash and zsh. The signature is the recorded one: a receiver refuses it once it is older
/// than 300 s. Signed again it is sent by `hookgate replay`.
#[derive(clap::Args)]
pub(crate) struct CurlArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    which: One,
    /// Where to [default: the recorded host and path, over http, or over https where a proxy said
    /// so; http://localhost:8080 where no host was recorded]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
}

pub(crate) fn show(args: &ShowArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let delivery = args.source.find(&args.which.chosen())?;
    if args.raw {
        let body = delivery.body.as_ref().ok_or_else(|| bodiless(&delivery))?;
        out.raw(body)?;
        return Ok(ExitCode::SUCCESS);
    }
    if out.is_json() {
        out.json_line(&camel_case(serde_json::json!(delivery)))?;
        return Ok(ExitCode::SUCCESS);
    }
    out.line(&head(&delivery, args.source.head_of(&delivery).age))?;
    out.line(&answer(&delivery))?;
    for line in answered_with(&delivery) {
        out.line(&line)?;
    }
    match &delivery.body {
        Some(body) => {
            out.line(&format!("body: {} bytes\n", body.len()))?;
            for line in pretty::lines(body, false) {
                out.line(&line)?;
            }
        }
        None => out.line(&format!("body: {}", why_no_body(&delivery)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The line of the log, with the names of `--json`.
pub(crate) fn camel_case(value: Value) -> Value {
    let Value::Object(fields) = value else {
        return value;
    };
    let named = fields.into_iter().map(|(name, value)| {
        let mut words = name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        let name = words.fold(first, |name, word| {
            let (letter, rest) = word.split_at(word.len().min(1));
            name + &letter.to_uppercase() + rest
        });
        (name, camel_case(value))
    });
    Value::Object(named.collect())
}

pub(crate) fn curl(args: &CurlArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let delivery = args.source.find(&args.which.chosen())?;
    let url = args.to.clone().unwrap_or_else(|| recorded_url(&delivery));
    let command = delivery.to_curl(&url).ok_or_else(|| bodiless(&delivery))?;
    out.say(&command, &serde_json::json!({ "curl": command }))?;
    if delivery.unverifiable {
        warn(
            "this command does not send what was signed",
            "something was taken out of it: sign it again with hookgate replay",
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// The URL to which the delivery was sent, as far as its headers say.
fn recorded_url(delivery: &LoggedDelivery) -> String {
    let header = |name| std::str::from_utf8(delivery.header(name)?).ok();
    let is_host = |host: &&str| host.parse::<Authority>().is_ok();
    let host = header("host").filter(is_host).unwrap_or("localhost:8080");
    let is_https = header("x-forwarded-proto") == Some("https");
    let scheme = if is_https { "https" } else { "http" };
    format!("{scheme}://{host}{}", delivery.target)
}

fn head(delivery: &LoggedDelivery, age: Option<i64>) -> String {
    let age = age.map(|age| match age {
        0.. => format!(", {age} s after it was signed"),
        _ => format!(", {} s before it was signed", age.unsigned_abs()),
    });
    let mut lines = vec![
        format!(
            "received {}{}",
            iso8601(delivery.received_at),
            age.unwrap_or_default()
        ),
        format!(
            "\n{} {}",
            printable(&delivery.method),
            printable(&delivery.target)
        ),
    ];
    for (name, value) in &delivery.headers {
        lines.push(format!("{}: {}", printable(name), printable_bytes(value)));
    }
    lines.join("\n") + "\n"
}

fn answer(delivery: &LoggedDelivery) -> String {
    let mut lines = Vec::new();
    match (&delivery.answer, delivery.hung_up_after) {
        (Some(answer), _) => {
            let (outcome, elapsed) = (printable(&answer.outcome), durations::show(answer.elapsed));
            lines.push(format!(
                "answered {} {outcome}, after {elapsed}",
                answer.status
            ));
            if let Some(reason) = &answer.reason {
                lines.push(format!("  reason: {}", printable(reason)));
            }
            if let Some(id) = &answer.claimed_subscription {
                lines.push(format!(
                    "  claimed subscription, unproven: {}",
                    printable(id)
                ));
            }
            for (name, text) in [("key", &answer.key), ("scope", &answer.scope)] {
                if let Some(text) = text {
                    lines.push(format!("  {name}: {}", printable(text)));
                }
            }
            if let Some(attempt) = answer.attempt {
                lines.push(format!("  attempt: {attempt}, probably"));
            }
        }
        (None, Some(after)) => {
            let after = durations::show(after);
            lines.push(format!(
                "not answered: the sender hung up after {after}, or the server stopped"
            ));
        }
        (None, None) => lines.push("not answered".into()),
    }
    if delivery.unverifiable {
        lines.push("unverifiable: something was taken out of it".into());
    }
    lines.join("\n")
}

/// The headers and the body of the answer, where the log has them.
fn answered_with(delivery: &LoggedDelivery) -> Vec<String> {
    let answer = delivery.answer.as_ref();
    let Some((answer, body)) = answer.and_then(|answer| Some((answer, answer.body.as_ref()?)))
    else {
        return Vec::new();
    };
    let kept = match answer.body_bytes {
        Some(whole) => format!("the first {} bytes of {whole}", body.len()),
        None => format!("{} bytes", body.len()),
    };
    let mut lines = vec![format!("\nbody of the answer: {kept}\n")];
    for (name, value) in &answer.headers {
        lines.push(format!("{}: {}", printable(name), printable_bytes(value)));
    }
    if !body.is_empty() {
        lines.push(String::new());
        lines.extend(pretty::lines(body, false));
    }
    lines.push(String::new());
    lines
}

fn why_no_body(delivery: &LoggedDelivery) -> String {
    match delivery.cut_off_at {
        Some(bytes) => {
            format!("not recorded: it is incomplete; {bytes} bytes were received")
        }
        None if delivery.unverifiable => "not recorded: it was taken out".into(),
        None => "not recorded: the delivery was refused or given up before it was read".into(),
    }
}

fn bodiless(delivery: &LoggedDelivery) -> Fault {
    let message = format!("the delivery's body is {}", why_no_body(delivery));
    Fault::new(Class::Input, message)
        .advise("see its head and its answer: hookgate log show LOG LINE")
}
