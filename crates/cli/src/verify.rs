//! `hookgate verify`: the receiver's verdict on a delivery.

use std::process::ExitCode;

use serde::Serialize;

use hookgate::{
    Delivery, Properties, Refusal, Scheme,
    verify::{DeliveryHeaders, Window},
};
use hookgate_record::LoggedDelivery;
use hookgate_testing::iso8601;
use hookgate_testing::log::LoggedDeliveryExt;

use crate::delivery_input::DeliveryArgs;
use crate::durations;
use crate::fault::{Class, Fault, answer, chain};
use crate::out::Out;
use crate::printable::{printable, short_reason};
use crate::secrets::{SchemeArgs, SecretArgs};

/// Say whether a delivery is authentic and fresh, or the exact error.
///
/// The checks are those of a receiver with its default settings: method, type, encoding, size,
/// headers, age, signature, and the event's id and type in body and headers.
///
/// The exit code is 0 where it is, 1 where it is not. `hookgate explain` says why not.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    scheme: SchemeArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

/// The ages that are accepted.
#[derive(clap::Args)]
#[command(next_help_heading = "Window")]
pub(crate) struct WindowArgs {
    /// The greatest age that is accepted: 300s, 5min
    #[arg(long = "window-past", alias = "past", value_name = "DURATION", default_value = "300s", value_parser = durations::parse)]
    past: std::time::Duration,
    /// The furthest ahead that is accepted: 300s, 5min
    #[arg(long = "window-ahead", alias = "ahead", value_name = "DURATION", default_value = "300s", value_parser = durations::parse)]
    ahead: std::time::Duration,
}

impl WindowArgs {
    pub(crate) fn window(&self) -> Window {
        Window::default()
            .with_past(self.past)
            .with_ahead(self.ahead)
    }
}

pub(crate) fn run(args: &VerifyArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let delivery = args.delivery.delivery()?;
    if delivery.unverifiable {
        return Err(Fault::new(
            Class::Input,
            "this delivery can't be verified: something was taken out of it when it was logged",
        )
        .advise("sign it again: hookgate replay, hookgate sign"));
    }
    if delivery.body.is_none() {
        let answer = delivery.answer.as_ref().map(|answer| {
            let reason = answer.reason.as_deref().unwrap_or(&answer.outcome);
            format!(" ({} {})", answer.status, short_reason(reason))
        });
        return Err(Fault::new(
            Class::Input,
            format!(
                "this delivery can't be verified: it was refused before its body was read{}, so the log has no body",
                printable(&answer.unwrap_or_default())
            ),
        )
        .advise("for all that the log has of it: hookgate log show"));
    }
    let (scheme, ring) = (&args.scheme, args.secret.ring()?);
    let verdict = delivery.verdict_by(scheme.scheme, ring, args.window.window());
    let verdict = verdict.map_err(|error| scheme.unusable(&error))?;
    let output = VerdictOutput::of(&delivery, &verdict, scheme.scheme);
    out.say(&output.text(), &output)?;
    Ok(answer(verdict.is_ok()))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct VerdictOutput {
    authentic: bool,
    key: Option<String>,
    signed_at: Option<String>,
    received_at: String,
    age_seconds: Option<i64>,
    error: Option<ErrorOutput>,
    /// Why a handler that takes `Event` answers 422.
    event_error: Option<String>,
}

/// The status of a refusal, the name of its reason, and the message.
#[derive(Serialize)]
pub(crate) struct ErrorOutput {
    status: u16,
    kind: &'static str,
    message: String,
}

impl ErrorOutput {
    pub(crate) fn of(refusal: &Refusal) -> Self {
        let error = refusal.verify_error();
        Self {
            status: refusal.kind().status(),
            kind: error.map_or(refusal.kind().name(), |error| error.kind().name()),
            message: error.map_or_else(|| chain(refusal), |error| chain(error)),
        }
    }
}

/// The reason why a handler that takes `Event` answers 422.
fn no_event(delivery: &Delivery) -> Option<String> {
    let is_event = delivery.verified().scheme_name() == Scheme::WORKSPACE.name();
    let error = delivery.event::<Properties>().err().filter(|_| is_event)?;
    Some(printable(&chain(&error)).into_owned())
}

impl VerdictOutput {
    fn of(delivery: &LoggedDelivery, verdict: &Result<Delivery, Refusal>, scheme: Scheme) -> Self {
        let head = {
            let headers = delivery.headers.iter();
            let pairs = headers.map(|(name, value)| (name, &**value));
            DeliveryHeaders::with_scheme(&scheme, pairs).ok()
        };
        let of_head = head.as_ref().and_then(|head| head.timestamp());
        let accepted = verdict.as_ref().ok().map(Delivery::verified);
        let signed = accepted.map_or(of_head, |verified| verified.timestamp());
        let signed = signed.map(|timestamp| timestamp.seconds());
        let received = delivery.received_at;
        Self {
            authentic: verdict.is_ok(),
            key: verdict
                .as_ref()
                .ok()
                .map(|accepted| accepted.verified().key_name().to_owned()),
            signed_at: signed.map(iso8601),
            received_at: iso8601(received),
            age_seconds: signed.map(|signed| received.as_i64().saturating_sub(signed.as_i64())),
            error: verdict.as_ref().err().map(ErrorOutput::of),
            event_error: verdict.as_ref().ok().and_then(no_event),
        }
    }

    fn text(&self) -> String {
        match &self.error {
            None => {
                let key = printable(self.key.as_deref().unwrap_or_default());
                let mut text = match (&self.signed_at, self.age_seconds) {
                    (Some(at), Some(age)) => {
                        format!("authentic: signed at {at} with {key}, {age} s before its receipt")
                    }
                    _ => format!("authentic: signed with {key}, at a time that it does not say"),
                };
                if let Some(reason) = &self.event_error {
                    let line = format!("\na handler that takes `Event` answers 422: {reason}");
                    text.push_str(&line);
                }
                text
            }
            Some(error) => format!(
                "{}: {}\n  why, and how to fix it: hookgate explain, with the same options",
                if error.status == 401 {
                    "not authentic"
                } else {
                    "not accepted"
                },
                printable(&error.message)
            ),
        }
    }
}
