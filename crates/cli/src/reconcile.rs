//! `hookgate reconcile`: the rows that changed without a handled event.

use std::collections::HashSet;
use std::error::Error;
use std::future::{Future, pending};
use std::io;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hookgate_client::Client;
use hookgate_client::reconcile::{
    MemoryMirror, Mirror, Pass, Reconcile, ReconcileError, Reconciled, Settings, SqliteMirror,
};
use indicatif::ProgressBar;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::api::{ConnectArgs, fault};
use crate::durations;
use crate::fault::{Class, Fault, answer, note};
use crate::interrupt;
use crate::out::Out;
use crate::printable::printable;

/// Find the rows of a data model that changed without a handled event, deletions too
///
/// Compares the rows that the service lists with a mirror: a SQLite file that a program feeds with
/// the events that it has handled. Nothing is changed, neither the rows nor the mirror. Creations
/// and updates are found in the second pass, deletions in the third. Half of the request rate is
/// taken at most. Rows may hold personal data: take care who can read the output.
///
/// Without a mirror nothing is known of the time before: the rows are taken as they are at the
/// beginning, and later changes are found.
#[derive(clap::Args)]
pub(crate) struct ReconcileArgs {
    /// The data model of the rows
    #[arg(long, value_name = "ID")]
    model: String,
    /// The mirror, a SQLite file, which is only read
    #[arg(long, value_name = "PATH")]
    mirror: Option<PathBuf>,
    /// Make so many passes
    #[arg(long, value_name = "NUMBER", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    passes: u32,
    /// Wait so long before each further pass, as in 10m: the event of a change may be under way
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = durations::parse)]
    pause: Duration,
    /// Accept at most this percentage of the rows as changed, and as many as deleted; if more
    /// differ, they are reported as unresolved. Raise it after an outage, when that many may really
    /// have changed
    #[arg(long, value_name = "PERCENT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(..=100))]
    guard_percent: u64,
    #[command(flatten)]
    connect: ConnectArgs,
}

pub(crate) fn run(args: &ReconcileArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let client = args.connect.client()?;
    interrupt::block_on_until_done(async {
        let mut interrupted = pin!(async {
            // Ends with the fault of Ctrl-C alone.
            let _ = interrupt::or_interrupted(pending::<()>()).await;
        });
        scan(args, client, out, interrupted.as_mut()).await
    })
}

async fn scan(
    args: &ReconcileArgs,
    client: Client,
    out: &mut Out,
    mut interrupted: Pin<&mut impl Future<Output = ()>>,
) -> Result<ExitCode, Fault> {
    let progress = if out.is_json() {
        ProgressBar::hidden()
    } else {
        ProgressBar::new_spinner()
    };
    let printer = Printer::new(out, progress.clone());
    let mirror: Arc<dyn Mirror> = match &args.mirror {
        Some(path) => {
            let unreadable = |error: &dyn Error| {
                let message = format!("the mirror {} can't be read", path.display());
                Fault::caused_by(Class::Input, &message, error).advise(FILL)
            };
            // SQLite gives one reason for a file that is missing and for one that may not be read.
            std::fs::metadata(path).map_err(|error| unreadable(&error))?;
            Arc::new(SqliteMirror::open_read_only(path).map_err(|error| unreadable(&error))?)
        }
        None => Arc::new(MemoryMirror::with_values()),
    };
    let reconcile = |settings: Settings| {
        let (shown, is_filling) = (progress.clone(), settings.is_filling);
        Reconcile::new(client.clone(), Arc::clone(&mirror), &args.model, settings).on_progress(
            move |pass| {
                let Pass {
                    number,
                    rows,
                    total,
                    pages,
                    ..
                } = pass;
                let of = total.map_or_else(String::new, |total| format!(" of {total}"));
                let name = name(*number, is_filling);
                shown.set_message(format!("{name}: {rows}{of} rows in {pages} pages"));
                shown.tick();
            },
        )
    };
    if args.mirror.is_none() {
        note("nothing is known of the time before, since there is no mirror");
        let mut settings = Settings::default();
        settings.is_filling = true;
        printer
            .pass(&mut reconcile(settings), true, interrupted.as_mut())
            .await?;
    }
    let mut settings = Settings::default();
    settings.guard_percent = args.guard_percent;
    let mut reconcile = reconcile(settings);
    let mut is_certain = true;
    for pass in 0..args.passes {
        if pass > 0 || args.mirror.is_none() {
            tokio::select! {
                () = interrupted.as_mut() => return Err(Fault::interrupted()),
                () = tokio::time::sleep(args.pause) => {}
            }
        }
        is_certain &= printer
            .pass(&mut reconcile, false, interrupted.as_mut())
            .await?
            .is_complete;
    }
    progress.finish_and_clear();
    Ok(answer(is_certain && printer.lock().printed.is_empty()))
}

/// Prints each finding once.
struct Printer<'o> {
    state: Mutex<State<'o>>,
    progress: ProgressBar,
    /// Nothing can be printed any more.
    has_failed: Notify,
}

struct State<'o> {
    out: &'o mut Out,
    /// A row that is not repaired is found again in each later pass.
    printed: HashSet<String>,
    error: Option<io::Error>,
}

impl<'o> Printer<'o> {
    fn new(out: &'o mut Out, progress: ProgressBar) -> Self {
        Self {
            state: Mutex::new(State {
                out,
                printed: HashSet::new(),
                error: None,
            }),
            progress,
            has_failed: Notify::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State<'o>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn pass(
        &self,
        reconcile: &mut Reconcile<Client, Arc<dyn Mirror>>,
        is_filling: bool,
        interrupted: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<Pass, Fault> {
        let stop = async {
            tokio::select! {
                () = interrupted => {}
                () = self.has_failed.notified() => {}
            }
        };
        // The mirror is written by a handler that succeeds; this one changes nothing.
        let print = async |finding: Reconciled| {
            self.print(&finding);
            Err::<(), _>("printed only")
        };
        let ended = reconcile.pass_until(stop, print).await;
        if let Some(error) = self.lock().error.take() {
            return Err(error.into());
        }
        let report = ended.map_err(failed)?;
        let pass = report.pass;
        let end = match report.stopped_at {
            Some(_) => "stopped",
            None if pass.is_complete => "complete",
            None => "not complete",
        };
        let mut counts = format!(
            "{}, {end}: {} rows in {} pages",
            name(pass.number, is_filling),
            pass.rows,
            pass.pages
        );
        if !is_filling {
            counts = format!(
                "{counts}, {} differ, {} absent",
                pass.differing, pass.absent
            );
        }
        self.progress.suspend(|| note(&counts));
        match report.stopped_at {
            Some(_) => Err(Fault::interrupted()),
            None => Ok(pass),
        }
    }

    fn print(&self, finding: &Reconciled) {
        let key = match finding {
            Reconciled::Unresolved(row) => format!("{} {}", row.reason.as_str(), row.row_id),
            _ => finding.id().unwrap_or_default().to_owned(),
        };
        let mut state = self.lock();
        if state.error.is_some() || !state.printed.insert(key) {
            return;
        }
        let out = &mut state.out;
        let line = json_of(finding);
        let said = self.progress.suspend(|| {
            out.say(&text(finding, &line), &line)
                .and_then(|()| out.flush())
        });
        if let Err(error) = said {
            state.error = Some(error);
            self.has_failed.notify_one();
        }
    }
}

/// The filling pass compares nothing, so it is none of the passes that were asked for.
fn name(number: u64, is_filling: bool) -> String {
    if is_filling {
        return "filling pass".to_owned();
    }
    format!("pass {number}")
}

const FILL: &str = "a program makes the mirror and feeds it with each event that it has handled: docs/reconciliation.md";

fn failed(error: ReconcileError<hookgate_client::Error>) -> Fault {
    match error {
        ReconcileError::Source(error) | ReconcileError::NoModel(error) => fault(&error),
        ReconcileError::EmptyMirror => Fault::new(Class::Input, error.to_string()).advise(FILL),
        error => Fault::caused_by(Class::Input, "the rows could not be compared", &error),
    }
}

fn json_of(finding: &Reconciled) -> Value {
    let mut line = json!({
        "kind": finding.kind(),
        "id": finding.id(),
        "datamodelId": finding.datamodel_id(),
        "rowId": finding.row_id(),
    });
    match finding {
        Reconciled::Created(found) | Reconciled::Updated(found) => {
            line["updatedAt"] = json!(found.updated_at);
            line["properties"] = json!(found.properties);
            line["before"] = json!(found.before);
        }
        Reconciled::Deleted(gone) => line["before"] = json!(gone.before),
        Reconciled::Unresolved(unresolved) => {
            line["reason"] = json!(unresolved.reason.as_str());
            line["difference"] = json!(unresolved.difference);
            line["updatedAt"] = json!(unresolved.updated_at);
            line["properties"] = json!(unresolved.properties);
            line["before"] = json!(unresolved.before);
        }
        _ => {}
    }
    line
}

fn text(finding: &Reconciled, line: &Value) -> String {
    let row = printable(finding.row_id().as_str()).into_owned();
    let rest = match finding {
        Reconciled::Unresolved(unresolved) => {
            let (reason, what) = (unresolved.reason.as_str(), unresolved.difference);
            let value = match unresolved.properties {
                Some(_) => &line["properties"],
                None => &line["before"],
            };
            let value = Some(value).filter(|value| !value.is_null());
            let value = value.map_or_else(String::new, |value| format!(" {value}"));
            format!("{what}: {reason}{value}")
        }
        Reconciled::Deleted(_) => String::new(),
        _ => line["properties"].to_string(),
    };
    let text = format!("{:10}  {row}  {}", finding.kind(), printable(&rest));
    text.trim_end().to_owned()
}
