//! `hookgate inbox stats`: the inbox in numbers.

use std::process::ExitCode;
use std::time::Duration;

use hookgate_inbox::InboxStats;

use super::place::InboxArg;
use crate::durations;
use crate::fault::Fault;
use crate::interrupt;
use crate::out::Out;

/// Show how many entries stand where, and how old the oldest is that waits or runs.
#[derive(clap::Args)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    place: InboxArg,
}

pub(crate) fn run(args: &StatsArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        let stats = inbox.stats().await;
        let stats = stats.map_err(|error| args.place.fault(&error))?;
        inbox.close().await;
        out.say(&text(&stats), &json(&stats))?;
        Ok(ExitCode::SUCCESS)
    })
}

fn text(stats: &InboxStats) -> String {
    let oldest = stats.oldest.map_or_else(String::new, |oldest| {
        let whole = Duration::from_secs(oldest.as_secs());
        format!(", the oldest accepted {} ago", durations::show(whole))
    });
    format!(
        "{} queued ({} of them failed before), {} running, {} dead, {} done{oldest}",
        stats.queued, stats.retrying, stats.running, stats.dead, stats.done
    )
}

fn json(stats: &InboxStats) -> serde_json::Value {
    serde_json::json!({
        "queued": stats.queued,
        "retrying": stats.retrying,
        "running": stats.running,
        "dead": stats.dead,
        "done": stats.done,
        "oldestSeconds": stats.oldest.map(|oldest| oldest.as_secs()),
    })
}
