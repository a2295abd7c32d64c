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
    /// Show them again each time that so long has passed, until Ctrl-C: 1s, 30s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    every: Option<Duration>,
}

pub(crate) fn run(args: &StatsArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    /// More frequent queries would keep the store busy all the time.
    const LEAST: Duration = Duration::from_millis(100);
    interrupt::block_on(async {
        let inbox = args.place.open().await?;
        loop {
            let stats = inbox.stats().await;
            let stats = stats.map_err(|error| args.place.fault(&error))?;
            out.say(&text(&stats), &json(&stats))?;
            out.flush()?;
            match args.every {
                Some(every) => tokio::time::sleep(every.max(LEAST)).await,
                None => break,
            }
        }
        inbox.close().await;
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
