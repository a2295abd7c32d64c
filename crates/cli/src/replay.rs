//! `hookgate replay`: sends a delivery log to a URL, and reports the answers.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::{Request, Response, Uri};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tokio::sync::Notify;

use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::replay::{
    Answered, AnsweredReport, Mode, Portable, Replay, ReplayError, ReplayErrorKind,
};
use hookgate_testing::sender::meaning;
use hookgate_testing::{DeliveryLog, Transport, TransportError};

use crate::durations;
use crate::event_types::is_of_type;
use crate::fault::{Class, Fault, INTERRUPTED, answer, chain, note};
use crate::http_client::{HttpClient, target, unreachable};
use crate::interrupt::or_interrupted;
use crate::out::Out;
use crate::printable::{printable, printable_lines};
use crate::secrets::SecretArgs;

/// Send a delivery log to a URL again, and print the answers
///
/// Deliveries are signed again for now, so that no receiver refuses them for their age. Those that the log says were refused as
/// not authentic go out as they came. A delivery whose body was not recorded is skipped, and counted. An answer is not a commit: the effect in a receiver can only be seen in a test, with
/// `hookgate_testing::Replay`.
///
/// Exit code 1 where one was not answered 2xx. Ctrl-C ends it with the answers so far, and 130.
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// The log: one delivery a line, as JSON. `-` reads standard input
    log: PathBuf,
    /// Where to send them
    #[arg(long, value_name = "URL")]
    to: String,
    /// Send them with their recorded signatures, and no secret. A delivery older than the receiver's window is refused
    #[arg(long)]
    raw: bool,
    /// Send this many copies after each delivery, 1000 at most
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=1_000))]
    duplicate: u32,
    /// Send them in another order
    #[arg(long)]
    reorder: bool,
    /// The seed of --reorder's order. Without it a new one is drawn each time, and printed
    #[arg(long, value_name = "NUMBER", requires = "reorder")]
    seed: Option<u64>,
    /// How many deliveries wait for their answers at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// The most deliveries a second
    #[arg(long, value_name = "N", value_parser = durations::per_second)]
    rate: Option<f64>,
    /// Only events of this type. May be given several times; `row.*` is all that begin so
    #[arg(long = "type", value_name = "TYPE", help_heading = "Which deliveries")]
    event_type: Vec<String>,
    /// Only the event of this id. May be given several times
    #[arg(long, value_name = "ID", help_heading = "Which deliveries")]
    id: Vec<String>,
    /// Only the delivery at this line, counted from 1. May be given several times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Which deliveries")]
    line: Vec<u64>,
    /// Only deliveries that came to this outcome, or were answered with this status. May be given several times
    #[arg(long, value_name = "OUTCOME", help_heading = "Which deliveries")]
    outcome: Vec<String>,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: &ReplayArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let to = target(&args.to)?;
    let log = open(&args.log)?;
    // Lines are counted as in the report of the replay.
    let mut line = 0;
    let replay = Replay::of(log).only(|logged| {
        line += 1;
        (args.line.is_empty() || args.line.contains(&line)) && args.selects(logged)
    });
    if args.raw {
        return send(replay.raw(), args, to, out);
    }
    let mut replay = replay.resigned();
    for (name, secret) in args.secret.named()? {
        replay = replay.named_secret(&name, secret);
    }
    send(replay, args, to, out)
}

fn send<M: Mode + Portable>(
    replay: Replay<M>,
    args: &ReplayArgs,
    to: Uri,
    out: &mut Out,
) -> Result<ExitCode, Fault> {
    let transport = UrlTransport {
        client: HttpClient::new()?,
        uri: to.clone(),
        failed: Arc::default(),
    };
    let failed = Arc::clone(&transport.failed);
    let mut through = replay
        .through(transport)
        .duplicated(args.duplicate)
        .concurrency(args.concurrency.into());
    if let Some(rate) = args.rate {
        through = through.per_second(rate);
    }
    if args.reorder {
        let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
        note(&format!("the same order again: --reorder --seed {seed}"));
        through = through.shuffled(seed);
    }
    let bar = progress(through.planned(), out);
    let unwritable = Arc::new(Notify::new());
    let (mut written, write_failed) = (Ok(()), Arc::clone(&unwritable));
    let through = through
        .on_answer(|answered| {
            bar.inc(1);
            if written.is_ok() {
                written = bar.suspend(|| print_answer(answered, out));
            }
            if written.is_err() {
                write_failed.notify_one();
            }
        })
        .until(async {
            let stop = or_interrupted(unwritable.notified());
            let _ = stop.await;
        });
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Fault::caused_by(Class::Network, "no runtime can be started", &error))?;
    let ended = runtime.block_on(through.run());
    // A host name that is still being looked up would delay the end of the program.
    runtime.shutdown_background();
    bar.finish_and_clear();
    written?;
    let report = ended.map_err(|error| fault_of(&error))?;
    print_summary(&report, out)?;
    if report.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let any_answer = report
        .answers
        .iter()
        .any(|answered| answered.status.is_some());
    match failed.get() {
        Some(error) if !any_answer => {
            out.flush()?;
            Err(unreachable(&to, error))
        }
        _ => Ok(answer(report.all_accepted())),
    }
}

/// Delivers to one URL, whatever the recorded path of a delivery. Keeps the first failure, for the advice.
#[derive(Clone)]
struct UrlTransport {
    client: HttpClient,
    uri: Uri,
    failed: Arc<OnceLock<TransportError>>,
}

impl Transport for UrlTransport {
    async fn deliver(
        &self,
        mut request: Request<Bytes>,
    ) -> Result<Response<Bytes>, TransportError> {
        *request.uri_mut() = self.uri.clone();
        self.client.deliver(request).await.map_err(|error| {
            let text = chain(error.as_ref());
            let _ = self.failed.set(error);
            text.into()
        })
    }
}

impl ReplayArgs {
    fn selects(&self, logged: &LoggedDelivery) -> bool {
        let is =
            |wanted: &str, what: Option<&String>| what.is_some_and(|what| is_of_type(wanted, what));
        let (id, event_type) = (logged.event_id(), logged.event_type());
        let has_outcome = |wanted: &String| {
            logged.answer.as_ref().is_some_and(|answer| {
                answer.outcome == *wanted || answer.status.to_string() == *wanted
            })
        };
        let asked = |wanted: &[String], holds: &dyn Fn(&String) -> bool| {
            wanted.is_empty() || wanted.iter().any(holds)
        };
        asked(&self.event_type, &|wanted| is(wanted, event_type.as_ref()))
            && asked(&self.id, &|wanted| id.as_ref() == Some(wanted))
            && asked(&self.outcome, &has_outcome)
    }
}

/// Prints a line for each answer as JSON; as text only for those that need a look.
fn print_answer(answered: &Answered, out: &mut Out) -> io::Result<()> {
    if out.is_json() {
        out.json_line(&json!({ "answer": answered }))?;
        return out.flush();
    }
    if answered.is_accepted() {
        return Ok(());
    }
    let shown = |text: &Option<String>| match text {
        Some(text) => printable(text).into_owned(),
        None => "?".to_owned(),
    };
    let copy = match answered.copy {
        0 => String::new(),
        copy => format!(", copy {copy}"),
    };
    let what = match (answered.status, &answered.failure) {
        (Some(status), _) => status.to_string(),
        (None, failure) => shown(failure),
    };
    let logged = match answered.logged_status {
        Some(status) if Some(status) != answered.status => format!("; logged: {status}"),
        _ => String::new(),
    };
    let (id, event_type) = (shown(&answered.event_id), shown(&answered.event_type));
    let line = answered.line;
    out.line(&format!(
        "line {line}{copy} {id} {event_type}: {what}{logged}"
    ))?;
    out.flush()
}

fn print_summary(report: &AnsweredReport, out: &mut Out) -> Result<(), Fault> {
    let summary = report.summary();
    if out.is_json() {
        return Ok(out.json_line(&json!({ "summary": summary }))?);
    }
    out.line(&printable_lines(&summary.to_string()))?;
    // One answer to all of them does not concern a single delivery.
    let mut statuses = summary.by_status.keys();
    if let (0, Some(&status), None) = (summary.accepted, statuses.next(), statuses.next()) {
        out.line(&format!("  {}", meaning(status)))?;
    }
    Ok(())
}

/// Shows the progress on standard error, and only where that is a terminal.
fn progress(deliveries: usize, out: &Out) -> ProgressBar {
    if out.is_json() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(u64::try_from(deliveries).unwrap_or(u64::MAX));
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {per_sec} {eta}");
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

fn open(path: &Path) -> Result<DeliveryLog, Fault> {
    let opened = if path.as_os_str() == "-" {
        DeliveryLog::read(io::stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| {
            let what = format!("the log {} can't be opened", path.display());
            Fault::caused_by(Class::Input, &what, &error)
                .advise("check the path; `-` is standard input")
        })?;
        DeliveryLog::read(BufReader::new(file))
    };
    opened.map_err(|error| {
        let what = format!("{} can't be replayed", path.display());
        Fault::caused_by(Class::Input, &what, &error)
            .advise("a delivery log has one delivery a line, as JSON")
    })
}

fn fault_of(error: &ReplayError) -> Fault {
    let (class, advice) = match error.kind() {
        ReplayErrorKind::Empty => (
            Class::Input,
            "is the log empty, or do --type, --id, --line and --outcome select no delivery? a body that was not recorded can't be sent",
        ),
        ReplayErrorKind::NoSecret | ReplayErrorKind::Keys => (
            Class::Secret,
            "give one secret, or up to four different ones of one subscription; or send --raw",
        ),
        _ => (Class::Input, "take these lines out of the log"),
    };
    Fault::caused_by(class, "nothing was sent", error).advise(advice)
}
