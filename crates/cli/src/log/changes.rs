//! `hookgate log diff`: the differences between two deliveries, or between two logs.

use std::path::PathBuf;
use std::process::ExitCode;

use hookgate_testing::log::{Difference, LoggedDeliveryExt};

use super::source::{Source, Which};
use crate::fault::{Class, Fault, answer};
use crate::out::Out;
use crate::printable::printable;

/// Compare two deliveries, or two logs.
///
/// Two deliveries of one log: hookgate log diff LOG 3 7
///
/// One event in two logs: hookgate log diff LOG evt_1 --with OTHER
///
/// All events of two logs, whose answers are compared: hookgate log diff LOG --with OTHER
///
/// Each difference is a path, the first value after `-` and the second after `+`. Bodies are compared as JSON: white space and the
/// order of keys make no difference, and where nothing else differs it says so: body (bytes). Numbers are shown with their own
/// digits; 12.50 and 12.5 are marked as the same number. The exit code is 0 without a difference, and 1 with one.
#[derive(clap::Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    source: Source,
    /// The first delivery: the number of its line, or its event's id
    #[arg(value_name = "FIRST")]
    first: Option<Which>,
    /// The second delivery: a line or an id of OTHER, or of LOG where --with is not given
    #[arg(value_name = "SECOND")]
    second: Option<Which>,
    /// Compare with this log
    #[arg(long, value_name = "OTHER")]
    with: Option<PathBuf>,
    /// The first delivery by its line. Given twice: the second one too
    #[arg(long, value_name = "N", conflicts_with_all = ["first", "second"], value_parser = clap::value_parser!(u64).range(1..))]
    line: Vec<u64>,
}

pub(crate) fn run(args: &DiffArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let other = args.with.as_deref().map(Source::of);
    let by_line = |at: usize| args.line.get(at).copied().map(Which::Line);
    let first = args.first.clone().or_else(|| by_line(0));
    let second = args.second.clone().or_else(|| by_line(1));
    if args.line.len() > 2 {
        return Err(Fault::new(Class::Usage, "two deliveries are compared")
            .advise("give --line once or twice"));
    }
    match (&first, &second, &other) {
        (Some(first), Some(second), other) => {
            let other = other.as_ref().unwrap_or(&args.source);
            deliveries((&args.source, first), (other, second), out)
        }
        (Some(first), None, Some(other)) => deliveries((&args.source, first), (other, first), out),
        (None, _, Some(other)) => logs(&args.source, other, out),
        (_, None, None) => Err(Fault::new(Class::Usage, "there is nothing to compare with")
            .advise("name two deliveries of the log, or another log: --with OTHER")),
        (None, Some(_), None) => Err(Fault::new(Class::Usage, "the first delivery is missing")),
    }
}

fn deliveries(
    (one_log, one): (&Source, &Which),
    (other_log, other): (&Source, &Which),
    out: &mut Out,
) -> Result<ExitCode, Fault> {
    let (one, other) = (one_log.find(one)?, other_log.find(other)?);
    let differences = one.differences(&other);
    for Difference {
        path,
        before,
        after,
        same_number,
        ..
    } in &differences
    {
        let value = serde_json::json!({
            "path": path, "before": before, "after": after, "sameNumber": same_number,
        });
        let note = match same_number {
            true => " (the same number, written differently)",
            false => "",
        };
        let mut lines = vec![format!("{}{note}", printable(path))];
        for (sign, side) in [("-", before), ("+", after)] {
            lines.extend(
                side.as_ref()
                    .map(|text| format!("  {sign} {}", printable(text))),
            );
        }
        out.say(&lines.join("\n"), &value)?;
    }
    Ok(answer(differences.is_empty()))
}

fn logs(one: &Source, other: &Source, out: &mut Out) -> Result<ExitCode, Fault> {
    let changed = one.whole()?.changed_events(&other.whole()?);
    for event in &changed {
        let value = serde_json::json!({ "eventId": event.event_id, "before": event.before, "after": event.after });
        let answers = |answers: &[String]| match answers {
            [] => "not there".to_owned(),
            answers => answers.join(", "),
        };
        let (before, after) = (answers(&event.before), answers(&event.after));
        let id = printable(&event.event_id);
        let text = format!(
            "{id}\n  - {}\n  + {}",
            printable(&before),
            printable(&after)
        );
        out.say(&text, &value)?;
    }
    Ok(answer(changed.is_empty()))
}
