//! `hookgate explain`: why a delivery is refused.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use hookgate_record::LoggedAnswer;
use hookgate_testing::explain::{Cause, Explainer, Explanation, Hint, Tried};

use crate::delivery_input::DeliveryArgs;
use crate::fault::{Fault, answer, chain};
use crate::out::Out;
use crate::printable::printable;
use crate::secrets::{SchemeArgs, SecretArgs, configured};
use crate::verify::{ErrorOutput, WindowArgs};

/// Say why a delivery is refused, and how to fix it.
///
/// Tries the known mistakes about secret, body, signed time, headers and clock one by one, and one
/// of the body with one of the secret, until the signature is right, and runs a receiver's checks
/// of method, type, encoding and event. Secrets are taken as they are configured, also invalid
/// ones. This is a diagnosis: no right signature is ever printed. The exit code is 0 where the
/// delivery is authentic, 1 where it is not.
#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    delivery: DeliveryArgs,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// A secret that the receiver does not use and the delivery may have been signed with: a
    /// retired one, another subscription's. From this environment variable; may be given several
    /// times
    #[arg(long, value_name = "VARIABLE", help_heading = "Secret")]
    other_env: Vec<String>,
    /// The same from a file
    #[arg(long, value_name = "PATH", help_heading = "Secret")]
    other_file: Vec<PathBuf>,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: &ExplainArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let delivery = args.delivery.delivery()?;
    let mut explainer = Explainer::new()
        .scheme(args.scheme.scheme)
        .window(args.window.window());
    for (name, text) in args.secret.as_configured()? {
        explainer = explainer.secret(&name, &*text);
    }
    for (name, text) in configured(&args.other_env, &args.other_file)? {
        explainer = explainer.other_secret(&name, &*text);
    }
    let explanation = explainer.explain(&delivery);
    let text = explanation.to_string();
    let is_authentic = explanation.is_authentic();
    let lines = text
        .lines()
        .map(|line| out.painted(&printable(line), style(line, is_authentic)));
    let lines: Vec<_> = lines.collect();
    out.say(&lines.join("\n"), &ExplanationOutput::of(&explanation))?;
    Ok(answer(is_authentic))
}

/// The verdict stands in the lines above the causes, which begin with an empty line.
fn style(line: &str, is_authentic: bool) -> Style {
    let of = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    match line {
        _ if line.starts_with("  fix ") => of(AnsiColor::Cyan),
        _ if line.starts_with("refused with ") => of(AnsiColor::Red),
        _ if line.starts_with("authentic") && is_authentic => of(AnsiColor::Green),
        _ => Style::new(),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplanationOutput<'e> {
    authentic: bool,
    key: Option<&'e str>,
    error: Option<ErrorOutput>,
    /// The answer that the log has.
    answer: Option<AnswerOutput<'e>>,
    conclusion: String,
    causes: &'e [Cause],
    /// Not proven.
    hints: &'e [Hint],
    /// Why a handler that takes `Event` answers 422.
    event_error: Option<String>,
    tried: Tried,
}

#[derive(Serialize)]
struct AnswerOutput<'e> {
    status: u16,
    outcome: &'e str,
    reason: Option<&'e str>,
}

impl<'e> AnswerOutput<'e> {
    fn of(answer: &'e LoggedAnswer) -> Self {
        Self {
            status: answer.status,
            outcome: &answer.outcome,
            reason: answer.reason.as_deref(),
        }
    }
}

impl<'e> ExplanationOutput<'e> {
    pub(crate) fn of(explanation: &'e Explanation) -> Self {
        Self {
            authentic: explanation.is_authentic(),
            key: explanation.key_name(),
            error: explanation.refusal().map(ErrorOutput::of),
            answer: explanation.logged_answer().map(AnswerOutput::of),
            conclusion: explanation.conclusion(),
            causes: explanation.causes(),
            hints: explanation.hints(),
            event_error: explanation.event_error().map(|error| chain(error)),
            tried: explanation.tried(),
        }
    }
}
