//! `hookgate inbox show`: one entry, with its proof and its body.

use std::process::ExitCode;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate::{
    Delivery,
    clock::{Clock, SystemClock},
};
use hookgate_inbox::{EntryId, StoredEntry};
use hookgate_testing::iso8601;
use serde::Serialize;

use super::choice::{EntrySummary, number};
use super::place::InboxArg;
use crate::durations;
use crate::fault::{Class, Fault};
use crate::listen::pretty;
use crate::out::Out;
use crate::printable::printable;

/// Show one entry: its state, its proof, and its body.
#[derive(clap::Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    place: InboxArg,
    /// Its number, as `hookgate inbox list` shows it
    #[arg(value_name = "ENTRY", value_parser = number)]
    entry: EntryId,
    /// Print the body alone, byte for byte
    #[arg(long)]
    raw: bool,
}

pub(crate) fn run(args: &ShowArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let found = args
        .place
        .call(async |inbox| inbox.show(args.entry).await)?;
    let Some(stored) = found else {
        let message = format!("there is no entry {}, or none any more", args.entry);
        return Err(Fault::new(Class::Input, message)
            .advise("hookgate inbox list, with the same inbox, shows the entries"));
    };
    if args.raw {
        let body = stored.body.as_ref().ok_or_else(|| {
            Fault::new(Class::Input, "the entry is done, and its body is deleted")
                .advise("see the rest of it without --raw")
        })?;
        out.raw(body)?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = EntryOutput::of(&stored);
    if out.is_json() {
        out.json_line(&output)?;
        return Ok(ExitCode::SUCCESS);
    }
    out.line(&output.text())?;
    match &stored.body {
        Some(body) => {
            out.line(&format!("body: {} bytes\n", body.len()))?;
            for line in pretty::lines(body, false) {
                out.line(&line)?;
            }
        }
        None => out.line("body: deleted, since the event is done")?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EntryOutput {
    #[serde(flatten)]
    shown: EntrySummary,
    received_at: String,
    /// The signed data besides the body.
    timestamp: String,
    key: String,
    subscription_id: Option<String>,
    workspace_id: Option<String>,
    /// The trace of the request.
    traceparent: Option<String>,
    body: Option<String>,
    /// For a body that is not UTF-8.
    body_base64: Option<String>,
}

impl EntryOutput {
    fn of(stored: &StoredEntry) -> Self {
        let body = stored.body.as_ref();
        let text = body.map(|body| String::from_utf8(body.to_vec()));
        let (body, body_base64) = match text {
            Some(Ok(text)) => (Some(text), None),
            Some(Err(bytes)) => (None, Some(STANDARD.encode(bytes.as_bytes()))),
            None => (None, None),
        };
        let traceparent = stored.delivery.as_ref().and_then(Delivery::traceparent);
        Self {
            shown: EntrySummary::of(&stored.listed, SystemClock.now()),
            received_at: iso8601(stored.received_at),
            timestamp: stored.timestamp.clone(),
            key: stored.key_name.clone(),
            subscription_id: stored.subscription_id.clone(),
            workspace_id: stored.pinned_workspace.clone(),
            traceparent: traceparent.map(str::to_owned),
            body,
            body_base64,
        }
    }

    fn text(&self) -> String {
        let shown = &self.shown;
        let age = std::time::Duration::from_secs(shown.age_seconds);
        let until = match (&shown.until, &*shown.state) {
            (Some(until), "queued") => format!(", due {until}"),
            (Some(until), "running") => format!(", leased until {until}"),
            (Some(until), _) => format!(", remembered until {until}"),
            (None, _) => String::new(),
        };
        let mut lines = vec![
            format!("entry {}: {}{until}", shown.entry, shown.state),
            format!(
                "accepted {}, {} ago",
                shown.accepted_at,
                durations::show(age)
            ),
            format!("tries: {}", shown.tries),
        ];
        let optional = [
            ("last error", &shown.last_error),
            ("subscription", &self.subscription_id),
            ("pinned to the workspace", &self.workspace_id),
            ("traceparent", &self.traceparent),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                lines.push(format!("{name}: {}", printable(value)));
            }
        }
        lines.push(format!(
            "\n{} {}",
            printable(&shown.event_type),
            printable(&shown.event_id)
        ));
        lines.push(format!(
            "received {}, signed at {}, by the key {}",
            self.received_at,
            printable(&self.timestamp),
            printable(&self.key)
        ));
        lines.join("\n")
    }
}
