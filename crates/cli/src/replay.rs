//! `hookgate replay`: sends a delivery log to a URL, and reports the answers.

use std::fs::File;
use std::future::Future;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response, Uri};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use tokio::sync::Notify;

use hookgate::{Scheme, Secret};
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::{LogLines, LoggedDeliveryExt};
use hookgate_testing::replay::{
    Answered, AnsweredReport, Latency, Mode, Portable, Replay, ReplayError, ReplayErrorKind,
    Summary,
};
use hookgate_testing::sender::meaning;
use hookgate_testing::{DeliveryLog, Transport, TransportError};

use crate::durations;
use crate::event_types::is_of_type;
use crate::fault::{Class, Fault, INTERRUPTED, answer, chain, note};
use crate::http_client::{HttpClient, target, unreachable};
use crate::interrupt::{block_on_until_done, or_interrupted};
use crate::out::Out;
use crate::printable::{printable, printable_lines};
use crate::secrets::{SchemeArgs, SecretArgs};

/// Send a delivery log to a URL again, and compare the answers with the log's
///
/// Deliveries are signed again for now, so that no receiver refuses them for their age. Those that
/// the log says were refused as not authentic go out as they came. A delivery whose body was not
/// recorded is skipped, and counted. An answer is not a commit: the effect in a receiver can only
/// be seen in a test, with `hookgate_testing::Replay`. The log is read as it is sent, so its length
/// does not matter.
///
/// Exit code 1 where one was answered neither 2xx nor as the log says. Ctrl-C ends it with the
/// answers so far, and 130.
#[derive(clap::Args)]
pub(crate) struct ReplayArgs {
    /// The log: one delivery a line, as JSON. `-` reads standard input
    log: PathBuf,
    /// Where to send them
    #[arg(long, value_name = "URL")]
    to: String,
    /// Send them with their recorded signatures, and no secret. A delivery older than the
    /// receiver's window is refused
    #[arg(long)]
    raw: bool,
    /// Send this many copies after each delivery, 1000 at most
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32).range(..=1_000))]
    duplicate: u32,
    /// Send them in another order, of up to a thousand at a time
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
    #[command(flatten)]
    wanted: Wanted,
    #[command(flatten)]
    scheme: SchemeArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

/// Which deliveries of the log.
#[derive(clap::Args, Clone)]
struct Wanted {
    /// Only events of this type. May be given several times; `row.*` is all that begin so
    #[arg(long = "type", value_name = "TYPE", help_heading = "Which deliveries")]
    event_type: Vec<String>,
    /// Only the event of this id. May be given several times
    #[arg(long, value_name = "ID", help_heading = "Which deliveries")]
    id: Vec<String>,
    /// Only the delivery at this line, counted from 1. May be given several times
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Which deliveries")]
    line: Vec<u64>,
    /// Only deliveries that came to this outcome, or were answered with this status. May be given
    /// several times
    #[arg(long, value_name = "OUTCOME", help_heading = "Which deliveries")]
    outcome: Vec<String>,
}

/// As many deliveries as are read at a time, unless their bodies are large.
const AT_A_TIME: usize = 1_000;
/// The bytes of bodies that are read at a time, but for the last one.
const BYTES_AT_A_TIME: usize = 4 << 20;

pub(crate) fn run(args: &ReplayArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let to = target(&args.to)?;
    let mut secrets = Vec::new();
    if !args.raw {
        secrets = args.secret.named()?;
    }
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..));
    let bar = progress(args, out);
    let deliveries = Deliveries::open(args, &bar)?;
    if args.reorder {
        note(&format!("the same order again: --reorder --seed {seed}"));
    }
    let transport = UrlTransport {
        client: HttpClient::new()?,
        uri: to.clone(),
        failed: Arc::default(),
    };
    let failed = Arc::clone(&transport.failed);
    let unwritable = Notify::new();
    // A host name that is still being looked up does not delay the end of the program.
    let ended = block_on_until_done(async {
        let stop = or_interrupted(unwritable.notified());
        let mut sender = Sender {
            args,
            transport,
            secrets,
            seed,
            out,
            bar: &bar,
            unwritable: &unwritable,
            written: Ok(()),
            began: Instant::now(),
            sent: 0,
            differing: 0,
            totals: Totals::default(),
        };
        let ended = sender.all(deliveries, pin!(stop)).await;
        sender.written?;
        sender.totals.elapsed = sender.began.elapsed();
        Ok::<_, Fault>((ended, sender.totals, sender.differing))
    });
    bar.finish_and_clear();
    let (ended, totals, differing) = ended?;
    let Some(summary) = totals.summary() else {
        ended?;
        return Err(match totals.interrupted {
            true => Fault::interrupted(),
            false => nothing_to_send(),
        });
    };
    print_summary(&summary, differing, out)?;
    if let Err(fault) = ended {
        out.flush()?;
        return Err(fault);
    }
    if summary.interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    match failed.get() {
        Some(error) if summary.by_status.is_empty() => {
            out.flush()?;
            Err(unreachable(&to, error))
        }
        _ => Ok(answer(differing == 0)),
    }
}

/// The deliveries of the log that are asked for, some at a time.
struct Deliveries {
    name: String,
    wanted: Wanted,
    scheme: Scheme,
    lines: LogLines<Box<dyn BufRead + Send>>,
}

type Read = (Vec<LoggedDelivery>, Vec<Named>);

/// What the log says of a delivery that is sent.
struct Named {
    line: u64,
    event_id: Option<String>,
    event_type: Option<String>,
}

impl Deliveries {
    fn open(args: &ReplayArgs, bar: &ProgressBar) -> Result<Self, Fault> {
        let reader: Box<dyn BufRead + Send> = if args.log.as_os_str() == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(&args.log).map_err(|error| {
                let what = format!("the log {} can't be opened", args.log.display());
                Fault::caused_by(Class::Input, &what, &error)
                    .advise("check the path; `-` is standard input")
            })?;
            bar.set_length(file.metadata().map_or(0, |metadata| metadata.len()));
            Box::new(BufReader::new(bar.wrap_read(file)))
        };
        let lines = DeliveryLog::lines(reader);
        Ok(Self {
            name: args.log.display().to_string(),
            wanted: args.wanted.clone(),
            scheme: args.scheme.scheme,
            lines,
        })
    }

    fn next(&mut self) -> Result<Read, Fault> {
        let (mut some, mut names, mut bytes) = (Vec::new(), Vec::new(), 0);
        while some.len() < AT_A_TIME && bytes < BYTES_AT_A_TIME {
            let Some(read) = self.lines.next() else { break };
            let logged = read.map_err(|error| {
                let what = format!("{} can't be replayed", self.name);
                Fault::caused_by(Class::Input, &what, &error)
                    .advise("a delivery log has one delivery a line, as JSON")
            })?;
            let head = logged.read_by(self.scheme);
            let named = Named {
                line: self.lines.line(),
                event_id: head.event_id,
                event_type: head.event_type,
            };
            if self.wanted.selects(&named, &logged) {
                names.push(named);
                bytes += logged.body.as_ref().map_or(0, Bytes::len);
                some.push(logged);
            }
        }
        Ok((some, names))
    }
}

struct Sender<'a> {
    args: &'a ReplayArgs,
    transport: UrlTransport,
    secrets: Vec<(String, Secret)>,
    seed: u64,
    out: &'a mut Out,
    bar: &'a ProgressBar,
    unwritable: &'a Notify,
    written: io::Result<()>,
    began: Instant,
    sent: usize,
    /// Neither accepted nor answered as logged.
    differing: usize,
    totals: Totals,
}

impl Sender<'_> {
    /// Sends all of them, until `stop` ends.
    async fn all(
        &mut self,
        mut deliveries: Deliveries,
        mut stop: Pin<&mut (impl Future<Output = Result<(), Fault>> + Send)>,
    ) -> Result<(), Fault> {
        let mut gap = None;
        loop {
            // Standard input may have nothing to read for long.
            let read = tokio::task::spawn_blocking(move || {
                let read = deliveries.next();
                (deliveries, read)
            });
            let waited = async {
                let read = read.await;
                let is_more = matches!(&read, Ok((_, Ok((some, _)))) if !some.is_empty());
                if let Some(gap) = gap.filter(|_| is_more) {
                    tokio::time::sleep(gap).await;
                }
                read
            };
            let read = tokio::select! {
                _ = stop.as_mut() => {
                    self.totals.interrupted = true;
                    return Ok(());
                }
                read = waited => read,
            };
            let unread = |error| Fault::caused_by(Class::Input, "the log can't be read", &error);
            let (rest, read) = read.map_err(unread)?;
            deliveries = rest;
            let (some, names) = read?;
            if some.is_empty() {
                return Ok(());
            }
            let mut replay = Replay::of(some.into_iter().collect()).scheme(self.args.scheme.scheme);
            if self.args.raw {
                self.send(replay.raw(), &names, stop.as_mut()).await?;
            } else {
                for (name, secret) in &self.secrets {
                    replay = replay.named_secret(name, secret.clone());
                }
                self.send(replay.resigned(), &names, stop.as_mut()).await?;
            }
            if self.totals.interrupted {
                return Ok(());
            }
            gap = self
                .args
                .rate
                .map(|rate| Duration::from_secs_f64(1.0 / rate));
        }
    }

    async fn send<M: Mode + Portable>(
        &mut self,
        replay: Replay<M>,
        names: &[Named],
        mut stop: Pin<&mut (impl Future<Output = Result<(), Fault>> + Send)>,
    ) -> Result<(), Fault> {
        let mut through = replay
            .through(self.transport.clone())
            .duplicated(self.args.duplicate)
            .concurrency(self.args.concurrency.into());
        if let Some(rate) = self.args.rate {
            through = through.per_second(rate);
        }
        if self.args.reorder {
            through = through.shuffled(self.seed);
        }
        let (out, written) = (&mut *self.out, &mut self.written);
        let (bar, unwritable) = (self.bar, self.unwritable);
        let (began, sent, differing) = (self.began, &mut self.sent, &mut self.differing);
        let through = through
            .on_answer(|answered| {
                let mut answered = answered.clone();
                if let Some(named) = names.get(answered.line.saturating_sub(1)) {
                    answered.line = usize::try_from(named.line).unwrap_or(usize::MAX);
                    let or = |known: &mut Option<String>, logged: &Option<String>| {
                        *known = known.take().or_else(|| logged.clone());
                    };
                    or(&mut answered.event_id, &named.event_id);
                    or(&mut answered.event_type, &named.event_type);
                }
                *sent += 1;
                let differs = !is_as_logged(&answered);
                *differing += usize::from(differs);
                bar.set_message(progress_of(*sent, began.elapsed()));
                // A line above the bar has it drawn twice.
                if written.is_ok() && (differs || out.is_json()) {
                    *written = bar.suspend(|| print_answer(&answered, out));
                }
                if written.is_err() {
                    unwritable.notify_one();
                }
            })
            .until(async {
                let _ = stop.as_mut().await;
            });
        match through.run().await {
            Ok(report) => self.totals.add(&report),
            // Others may follow that can be sent.
            Err(error) if error.kind() == ReplayErrorKind::Empty => {
                self.totals.skipped += names.len();
            }
            Err(error) => return Err(fault_of(&error, names)),
        }
        Ok(())
    }
}

/// The sums of all reports.
#[derive(Default)]
struct Totals {
    /// Its latency is computed at the end, of all times.
    summary: Option<Summary>,
    /// Of reads that held nothing else.
    skipped: usize,
    interrupted: bool,
    /// With the time between two reads.
    elapsed: Duration,
    /// The microseconds of each answer: the one thing that grows, by 4 bytes each.
    times: Vec<u32>,
}

impl Totals {
    fn add(&mut self, report: &AnsweredReport) {
        let answered = report.answers.iter().filter(|it| it.status.is_some());
        let times = answered.map(|it| u32::try_from(it.elapsed_us).unwrap_or(u32::MAX));
        self.times.extend(times);
        let more = report.summary();
        self.interrupted |= more.interrupted;
        let Some(sum) = &mut self.summary else {
            self.summary = Some(more);
            return;
        };
        sum.planned += more.planned;
        sum.sent += more.sent;
        sum.skipped += more.skipped;
        sum.accepted += more.accepted;
        sum.replayed += more.replayed;
        sum.refused += more.refused;
        sum.unanswered += more.unanswered;
        sum.as_they_came += more.as_they_came;
        for (status, count) in more.by_status {
            *sum.by_status.entry(status).or_default() += count;
        }
        for (failure, count) in more.by_failure {
            *sum.by_failure.entry(failure).or_default() += count;
        }
    }

    fn summary(&self) -> Option<Summary> {
        let mut sum = self.summary.clone()?;
        sum.skipped += self.skipped;
        sum.interrupted = self.interrupted;
        sum.elapsed_us = u64::try_from(self.elapsed.as_micros()).unwrap_or(u64::MAX);
        sum.latency = Latency::of(self.times.iter().map(|&time| time.into()));
        Some(sum)
    }
}

/// 2xx, or what the log says: a delivery that was refused and is refused again is no failure.
fn is_as_logged(answered: &Answered) -> bool {
    answered.is_accepted()
        || (answered.status.is_some() && answered.status == answered.logged_status)
}

/// Delivers to one URL, whatever the recorded path of a delivery. Keeps the first failure, for the
/// advice.
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

impl Wanted {
    fn selects(&self, named: &Named, logged: &LoggedDelivery) -> bool {
        let is =
            |wanted: &str, what: Option<&String>| what.is_some_and(|what| is_of_type(wanted, what));
        let has_outcome = |wanted: &String| {
            logged.answer.as_ref().is_some_and(|answer| {
                answer.outcome == *wanted || answer.status.to_string() == *wanted
            })
        };
        let asked = |wanted: &[String], holds: &dyn Fn(&String) -> bool| {
            wanted.is_empty() || wanted.iter().any(holds)
        };
        (self.line.is_empty() || self.line.contains(&named.line))
            && asked(&self.event_type, &|wanted| {
                is(wanted, named.event_type.as_ref())
            })
            && asked(&self.id, &|wanted| named.event_id.as_ref() == Some(wanted))
            && asked(&self.outcome, &has_outcome)
    }
}

/// Prints a line for an answer.
fn print_answer(answered: &Answered, out: &mut Out) -> io::Result<()> {
    if out.is_json() {
        out.json_line(&json!({ "answer": answered }))?;
        return out.flush();
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

fn print_summary(summary: &Summary, differing: usize, out: &mut Out) -> Result<(), Fault> {
    if out.is_json() {
        let mut summary = json!(summary);
        summary["differing"] = differing.into();
        return Ok(out.json_line(&json!({ "summary": summary }))?);
    }
    out.line(&printable_lines(&summary.to_string()))?;
    let others = summary.refused + summary.unanswered;
    if others > differing {
        let as_logged = others - differing;
        out.line(&format!(
            "{as_logged} of those not answered 2xx are answered as logged"
        ))?;
    }
    // One answer to all of them does not concern a single delivery.
    let mut statuses = summary.by_status.keys();
    if let (1.., 0, Some(&status), None) = (
        differing,
        summary.accepted,
        statuses.next(),
        statuses.next(),
    ) {
        out.line(&format!("  {}", meaning(status)))?;
    }
    Ok(())
}

/// The most often that the bar is drawn in a second.
const DRAWN_PER_SECOND: u8 = 10;

/// Shows on standard error how much of the log is read, and only where that is a terminal. Standard
/// input has no length.
fn progress(args: &ReplayArgs, out: &Out) -> ProgressBar {
    if out.is_json() {
        return ProgressBar::hidden();
    }
    let template = match args.log.as_os_str() == "-" {
        true => "{spinner} {msg}",
        false => "{wide_bar} {percent}% {msg} {eta}",
    };
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::with_draw_target(
        Some(0),
        ProgressDrawTarget::stderr_with_hz(DRAWN_PER_SECOND),
    )
    .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

fn progress_of(sent: usize, elapsed: Duration) -> String {
    #[allow(clippy::cast_precision_loss)] // one digit behind the point is shown
    let rate = sent as f64 / elapsed.as_secs_f64().max(0.001);
    format!("{sent} sent, {rate:.1}/s")
}

fn nothing_to_send() -> Fault {
    Fault::new(Class::Input, "nothing was sent: no delivery to send").advise(
        "is the log empty, or do --type, --id, --line and --outcome select no delivery? a body that was not recorded can't be sent",
    )
}

fn fault_of(error: &ReplayError, names: &[Named]) -> Fault {
    const SHOWN: usize = 10;
    if matches!(
        error.kind(),
        ReplayErrorKind::NoSecret | ReplayErrorKind::Keys
    ) {
        return Fault::caused_by(Class::Secret, "nothing was sent", error).advise(
            "give one secret, or up to four different ones of one subscription; or send --raw",
        );
    }
    // The replay counts the lines that it was given.
    let lines = error
        .lines()
        .iter()
        .filter_map(|line| names.get(line.checked_sub(1)?));
    let lines: Vec<_> = lines
        .map(|named| named.line.to_string())
        .take(SHOWN)
        .collect();
    let what = format!(
        "no more was sent: these lines hold no request that can be sent: {}",
        lines.join(", ")
    );
    match lines.is_empty() {
        true => Fault::caused_by(Class::Input, "no more was sent", error),
        false => Fault::new(Class::Input, what).advise("take these lines out of the log"),
    }
}
