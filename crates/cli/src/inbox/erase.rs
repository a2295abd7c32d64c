//! `hookgate inbox erase`: deletes the data of one person, or of one row, from an inbox and from delivery logs.

mod lines;
mod logs;
mod subject;

use std::path::PathBuf;
use std::process::ExitCode;

use hookgate::{
    clock::{Clock, SystemClock},
    dedupe::StoreError,
};
use hookgate_inbox::{EntryId, EntryState, Inbox, Listed, Page, Selection};
use serde::Serialize;
use serde_json::json;

use self::logs::Log;
use self::subject::{Holds, Subject};
use super::choice::{EntrySummary, entries};
use super::list;
use super::place::InboxArg;
use crate::fault::{Fault, answer, note};
use crate::interrupt;
use crate::out::Out;

/// Delete the data of one person, or of one row, from the inbox and from delivery logs. Without --yes, only list it.
///
/// Of an entry that is dead or done, the body, the row and the last error are deleted. Its event's id stays known for the
/// retention, so that a copy is not handled again. Entries that wait or run are listed and kept, unless --including-waiting is
/// given. Of another's entry whose last error has the id, only the last error is deleted, whatever its state. Lines of a log are
/// deleted as a whole. The effects of your handlers are not touched.
///
/// Exit code 1 where nothing was found, and where --yes has kept an entry.
#[derive(clap::Args)]
#[command(
    group(clap::ArgGroup::new("whose").required(true).args(["person", "row"])),
    group(clap::ArgGroup::new("where").required(true).multiple(true).args(["db", "database_url_env", "database_url_file", "log"])),
    mut_group("inbox", |group| group.required(false)),
)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    place: InboxArg,
    /// Everything in which this id stands as a word of its own: authors of changes, values of columns, texts. An e-mail address
    /// can be given as well
    #[arg(long, value_name = "ID", value_parser = subject::id)]
    person: Option<String>,
    /// Everything of this row
    #[arg(long, value_name = "ID", value_parser = subject::id)]
    row: Option<String>,
    /// A delivery log, with its rotated files: LOG.1, LOG.2. May be given several times, also without an inbox
    #[arg(long, value_name = "LOG")]
    log: Vec<PathBuf>,
    /// Erase entries that wait or run too. THEY ARE THEN NEVER HANDLED, and a handler that runs is not stopped
    #[arg(long)]
    including_waiting: bool,
    /// Erase what is found
    #[arg(long)]
    yes: bool,
}

/// An entry that was found.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FoundEntry {
    #[serde(flatten)]
    shown: EntrySummary,
    /// It waits or runs, and is not to be erased.
    kept: bool,
    /// It is another's, and only its last error is to be erased.
    last_error_only: bool,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    entries: usize,
    kept: usize,
    last_errors: usize,
    lines: u64,
    logs: usize,
}

pub(crate) fn run(args: &EraseArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let subject = Subject::of(args.person.as_deref(), args.row.as_deref());
    let logs = args.log.iter().map(|path| Log::open(path));
    let logs = logs.collect::<Result<Vec<_>, _>>()?;
    interrupt::block_on(async {
        let mut counts = Counts::default();
        let ended = everywhere(args, &logs, &subject, &mut counts, out).await;
        if let Err(fault) = ended {
            if args.yes && counts.entries as u64 + counts.last_errors as u64 + counts.lines > 0 {
                // Where that can't be printed, the fault is still the first one.
                let _ = say(args, counts, out);
            }
            return Err(fault);
        }
        conclude(args, counts, out)
    })
}

/// Counts each deletion at once, so that the number is known after a fault, too.
async fn everywhere(
    args: &EraseArgs,
    logs: &[Log],
    subject: &Subject<'_>,
    counts: &mut Counts,
    out: &mut Out,
) -> Result<(), Fault> {
    if args.place.is_given() {
        let inbox = args.place.open().await?;
        in_inbox(args, &inbox, subject, counts, out).await?;
        inbox.close().await;
    }
    for log in logs {
        let (found, before) = (log.search(subject, out)?, counts.lines);
        let mut erased = Ok(());
        if args.yes && found > 0 {
            // Lines may have come, or been rotated away, since they were found.
            erased = log.erase(subject, &mut counts.lines);
        } else {
            counts.lines += found;
        }
        counts.logs += usize::from(counts.lines > before);
        erased?;
    }
    Ok(())
}

async fn in_inbox(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
    counts: &mut Counts,
    out: &mut Out,
) -> Result<(), Fault> {
    let found = find(args, inbox, subject).await?;
    if !found.is_empty() && !out.is_json() {
        out.line(&list::row(&list::HEAD))?;
    }
    let (theirs, others): (Vec<_>, Vec<_>) =
        found.iter().partition(|(_, holds)| *holds == Holds::InBody);
    let mut targets = Vec::new();
    let now = SystemClock.now();
    let say = |listed: &Listed, kept, last_error_only, out: &mut Out| {
        let shown = EntrySummary::of(listed, now);
        let found = FoundEntry {
            shown,
            kept,
            last_error_only,
        };
        out.say(&list::text(&found.shown), &found)
    };
    for (listed, _) in &theirs {
        let waits = matches!(listed.state, EntryState::Queued | EntryState::Running);
        let kept = waits && !args.including_waiting;
        if !kept {
            targets.push(listed.id);
        }
        say(listed, kept, false, out)?;
    }
    if !others.is_empty() && !out.is_json() {
        out.line(
            "the id is in the last errors of these alone, which are erased, and the entries stay:",
        )?;
    }
    for (listed, _) in &others {
        say(listed, false, true, out)?;
    }
    out.flush()?;
    counts.kept = theirs.len() - targets.len();
    if args.yes {
        // After a fault, only the entries that were deleted count.
        let until = |error: &StoreError| usize::try_from(error.changed()).unwrap_or(usize::MAX);
        if !others.is_empty() {
            let others: Vec<EntryId> = others.iter().map(|(listed, _)| listed.id).collect();
            let erased = inbox.erase_last_errors(&others).await;
            counts.last_errors = erased.as_ref().map_or_else(until, |_| others.len());
            erased.map_err(|error| not_erased(args, &error))?;
        }
        // Also without an entry: what was deleted before may have left its bytes in the file.
        let erased = if args.including_waiting {
            inbox.erase_including_waiting(&targets).await
        } else {
            inbox.erase(&targets).await
        };
        counts.entries = erased.as_ref().map_or_else(until, |_| targets.len());
        erased.map_err(|error| not_erased(args, &error))?;
        // One may have been made due, or leased, since it was listed.
        for id in targets {
            let holds = match inbox.show(id).await {
                Ok(shown) => shown.is_some_and(|shown| subject.is_in(&shown).is_some()),
                Err(error) => return Err(args.place.fault(&error)),
            };
            counts.entries -= usize::from(holds);
            counts.kept += usize::from(holds);
        }
    } else {
        (counts.entries, counts.last_errors) = (targets.len(), others.len());
    }
    Ok(())
}

/// The last step writes an inbox's file anew. Without it, entries are erased and their bytes may still be there.
fn not_erased(args: &EraseArgs, error: &StoreError) -> Fault {
    let fault = args.place.fault(error);
    if !args.place.is_file() {
        return fault;
    }
    let advice = fault.advice().unwrap_or_default();
    let advice = format!(
        "{advice}. Until a run ends without this error, erased data may be left in the file"
    );
    fault.advise(advice)
}

/// The entries that hold data of the subject, and where.
async fn find(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
) -> Result<Vec<(Listed, Holds)>, Fault> {
    const PAGE: usize = 1_000;
    let (mut found, mut page) = (Vec::new(), Page::first(PAGE));
    loop {
        let listed = inbox.list(Selection::all(), page).await;
        let listed = listed.map_err(|error| args.place.fault(&error))?;
        let end = listed.last().map(|last: &Listed| last.id);
        let is_full = listed.len() == PAGE;
        for listed in listed {
            if let Some(holds) = holds(args, inbox, subject, &listed).await? {
                found.push((listed, holds));
            }
        }
        match end {
            Some(end) if is_full => page = Page::after(end, PAGE),
            _ => return Ok(found),
        }
    }
}

async fn holds(
    args: &EraseArgs,
    inbox: &Inbox,
    subject: &Subject<'_>,
    listed: &Listed,
) -> Result<Option<Holds>, Fault> {
    // An entry without a body has its last error at most.
    if listed.body_bytes == 0 {
        return Ok(subject.is_in_last_error(listed));
    }
    let shown = inbox.show(listed.id).await;
    let shown = shown.map_err(|error| args.place.fault(&error))?;
    Ok(shown.and_then(|shown| subject.is_in(&shown)))
}

/// Prints the counts of an erasure, or of its dry run.
fn say(args: &EraseArgs, counts: Counts, out: &mut Out) -> Result<(), Fault> {
    let Counts {
        entries: erased,
        kept,
        last_errors,
        lines,
        logs,
    } = counts;
    let value = json!({
        "dryRun": !args.yes,
        "entries": erased,
        "kept": kept,
        "lastErrors": last_errors,
        "lines": lines,
        "logs": logs,
    });
    let of_logs = match (lines, logs) {
        (0, _) => "no line of a log".to_owned(),
        (1, _) => "1 line of a log".to_owned(),
        (_, 1) => format!("{lines} lines of 1 log"),
        _ => format!("{lines} lines of {logs} logs"),
    };
    let of_others = match last_errors {
        0 => String::new(),
        1 => ", the last error of 1 other".into(),
        count => format!(", the last errors of {count} others"),
    };
    let of_inbox = format!("{}{of_others}", entries(erased as u64));
    // A place that was not searched is not named.
    let what = match (args.place.is_given(), args.log.is_empty()) {
        (true, true) => of_inbox,
        (true, false) => format!("{of_inbox} and {of_logs}"),
        (false, _) => of_logs,
    };
    let nothing = erased == 0 && last_errors == 0 && lines == 0;
    let what = match (args.yes, kept) {
        (false, 0) if nothing => format!("nothing to erase: {what}"),
        (true, 0) => format!("{what} erased"),
        (true, _) => format!(
            "{what} erased; {} that wait or run kept",
            entries(kept as u64)
        ),
        (false, 0) => format!("nothing erased yet, --yes erases {what}"),
        (false, _) => format!(
            "nothing erased yet, --yes erases {what}; {} that wait or run are kept without --including-waiting",
            entries(kept as u64)
        ),
    };
    out.say(&what, &value)?;
    out.flush()?;
    Ok(())
}

fn conclude(args: &EraseArgs, counts: Counts, out: &mut Out) -> Result<ExitCode, Fault> {
    say(args, counts, out)?;
    let Counts {
        entries,
        kept,
        last_errors,
        lines,
        ..
    } = counts;
    if entries == 0 && kept == 0 && last_errors == 0 && lines == 0 {
        note(if args.place.is_given() {
            "nothing was found with that id. An entry that is done has no body, and can't be searched"
        } else {
            "nothing was found with that id"
        });
        return Ok(answer(false));
    }
    if args.yes && kept > 0 {
        note(
            "run it again when the entries are handled or dead, or with --including-waiting, which erases them unhandled",
        );
        return Ok(answer(false));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use hookgate::dedupe::StoreErrorKind;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        args: EraseArgs,
    }

    #[test]
    fn what_a_failed_erasure_may_leave_is_said_of_a_file_alone() {
        for (place, is_file) in [("--db", true), ("--database-url-env", false)] {
            let command = ["erase", "--person", "usr_1", place, "inbox"];
            let args = Command::parse_from(command).args;
            for kind in [StoreErrorKind::TimedOut, StoreErrorKind::Full] {
                let fault = not_erased(&args, &StoreError::new(kind));
                let advice = fault.advice().unwrap_or_default();
                assert_eq!(advice.contains("left in the file"), is_file, "{advice}");
            }
        }
    }
}
