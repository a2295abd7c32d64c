//! `hookgate simulate`: the service itself, as a receiver sees it.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bytes::Bytes;
use hookgate::clock::SystemClock;
use hookgate::dedupe::RetrySchedule;
use hookgate::event::EventError;
use hookgate_testing::factory::{EventFactory, SampleEvent};
use hookgate_testing::iso8601;
use hookgate_testing::sender::{
    Disposition, NetworkFaults, Reading, RetryTimestamps, Sender, SenderBuilder, SenderReport,
    SentEvent, Subscription,
};
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::delivery_input::bytes_of;
use crate::fault::{Class, Fault, answer};
use crate::http_client::{HttpClient, target};
use crate::out::Out;
use crate::printable::printable;
use crate::secrets::SecretArgs;
use crate::{durations, interrupt};

/// Deliver a stream of events as the service does: rows are created, changed and deleted, and a
/// failed delivery is followed through its retries.
///
/// It ends when every event is delivered or discarded, and its exit code is 1 where one was
/// discarded. On Ctrl-C it prints the state of each so far.
#[derive(clap::Args)]
pub(crate) struct SimulateArgs {
    /// Where to: the subscription's URL
    #[arg(long, value_name = "URL")]
    to: String,
    /// Stop making events after this many. 20 where neither this nor --duration nor --body-file is
    /// given
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Stop making events after so long: 30s, 5min, 48h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse)]
    duration: Option<Duration>,
    /// So many events a second, in real time; 0.1 is one in ten seconds
    #[arg(long, value_name = "N", default_value = "1", value_parser = durations::per_second)]
    rate: f64,
    /// Divide the waits between attempts (1 min, 5 min, 30 min, 2 h, 24 h). Nothing else becomes
    /// faster: not the 5 s for an answer, and no time of the receiver. Above 2, a retry may come
    /// before a lease of 30 s has ended
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    speed: u32,
    /// The same seed makes the same events, with the same ids: a receiver that still knows them
    /// handles none again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Discard an event after this many attempts. The service's specification says five, and lists
    /// the waits of six
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(5..=6))]
    attempts: u32,
    /// Let retries carry the timestamp and signature of the first attempt, in place of being signed
    /// again
    #[arg(long)]
    first_timestamp: bool,
    /// Deliver the event in this file, byte for byte, in place of made-up ones. May be given
    /// several times; each file is one event, sent once unless --count or --duration asks for more
    #[arg(long, value_name = "FILE", conflicts_with = "data_model")]
    body_file: Vec<PathBuf>,
    /// Send events of this data model alone: one that is limited to it
    #[arg(long, value_name = "ID", value_parser = ["dm_customers", "dm_orders"])]
    data_model: Option<String>,
    /// The subscription's id, for X-Service-Webhook-Id
    #[arg(long, value_name = "ID", default_value = "wh_1")]
    subscription: String,
    /// How many requests wait for their answers at a time
    #[arg(long, alias = "at-once", value_name = "N", default_value = "16", value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,
    /// The percentage of attempts whose connection is refused
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent, help_heading = "Network")]
    refused: f64,
    /// So many percent of answers get lost
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent, help_heading = "Network")]
    answers_lost: f64,
    /// So many percent of deliveries arrive twice
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent, help_heading = "Network")]
    duplicated: f64,
    /// So many percent of deliveries and their answers take up to 8 s each
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = percent, help_heading = "Network")]
    slow: f64,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: &SimulateArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let seed = args.seed.unwrap_or_else(|| fastrand::u64(..1_000_000_000));
    let bodies = args.body_file.iter().map(|path| {
        let body = Bytes::from(bytes_of("the body", path)?);
        one_event(path, &body)?;
        Ok(body)
    });
    let mut events = Events {
        bodies: bodies.collect::<Result<_, Fault>>()?,
        sent: 0,
        rows: Rows {
            factory: EventFactory::seeded(seed).with_clock(SystemClock),
            draws: fastrand::Rng::with_seed(seed),
            of_customers: args.data_model.as_deref() == Some("dm_customers"),
            open: VecDeque::new(),
            shipped: VecDeque::new(),
        },
    };
    let (sender_progress, progress) = unbounded_channel();
    let sender = sender(args, seed, sender_progress)?;
    let lines = Lines {
        progress,
        attempts: args.attempts,
    };
    let work = work(args, seed, sender, &mut events, lines, out);
    interrupt::block_on_until_done(work)
}

async fn work(
    args: &SimulateArgs,
    seed: u64,
    builder: SenderBuilder,
    events: &mut Events,
    mut lines: Lines,
    out: &mut Out,
) -> Result<ExitCode, Fault> {
    let started = Instant::now();
    let mut sender = builder.build();
    let stream = stream(args, &mut sender, events, &mut lines, out);
    let ended = interrupt::or_interrupted(stream).await;
    let interrupted = match ended {
        Ok(ended) => ended.map(|()| None)?,
        Err(fault) => Some(fault),
    };
    let report = sender.report();
    drop(sender);
    // Reports that arrived in the meantime.
    while let Ok(progress) = lines.progress.try_recv() {
        lines.print(&progress, out)?;
    }
    let made_up = events.bodies.is_empty();
    summary(&report, seed, made_up, started.elapsed(), out)?;
    match interrupted {
        Some(fault) => Err(fault),
        None => Ok(answer(report.delivered().count() == report.events().len())),
    }
}

/// Makes events, then waits for their results.
async fn stream(
    args: &SimulateArgs,
    sender: &mut Sender,
    events: &mut Events,
    lines: &mut Lines,
    out: &mut Out,
) -> Result<(), Fault> {
    let count = match (args.count, args.duration) {
        (None, None) if !events.bodies.is_empty() => events.bodies.len() as u64,
        (None, None) => 20,
        (count, _) => count.unwrap_or(u64::MAX),
    };
    let until = args
        .duration
        .and_then(|duration| Instant::now().checked_add(duration));
    let far = Instant::now() + Duration::from_secs(365 * 24 * 3_600);
    let mut ticks = interval(Duration::from_secs_f64(1.0 / args.rate));
    // Events that could not be made in time are made up for at once, so that their number is right.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut made = 0;
    loop {
        let more = made < count && until.is_none_or(|until| Instant::now() < until);
        tokio::select! {
            Some(progress) = lines.progress.recv() => lines.print(&progress, out)?,
            _ = ticks.tick(), if more => {
                made += 1;
                events.next(sender)?;
            }
            () = sleep_until(until.unwrap_or(far)), if more => {}
            _ = sender.settle(), if !more => return Ok(()),
        }
    }
}

/// The events to deliver: those of the files in turn, or made-up ones.
struct Events {
    bodies: Vec<Bytes>,
    sent: usize,
    rows: Rows,
}

/// Made-up events: each row is created, then updated, then deleted.
struct Rows {
    factory: EventFactory,
    draws: fastrand::Rng,
    of_customers: bool,
    open: VecDeque<String>,
    shipped: VecDeque<String>,
}

impl Rows {
    fn next(&mut self) -> SampleEvent {
        let event = match self.draws.u8(..3) {
            0 if !self.shipped.is_empty() => {
                let row = self.shipped.pop_front().unwrap_or_default();
                self.factory.row_deleted().row(&row)
            }
            1 if !self.open.is_empty() => {
                let row = self.open.pop_front().unwrap_or_default();
                self.shipped.push_back(row.clone());
                self.factory.row_updated().row(&row)
            }
            _ => {
                let event = self.factory.row_created();
                self.open.extend(event.get_text("data.rowId"));
                event
            }
        };
        match self.of_customers {
            true => event.model("dm_customers", "Customers"),
            false => event,
        }
    }
}

impl Events {
    /// Sends the next event.
    fn next(&mut self, sender: &mut Sender) -> Result<(), Fault> {
        let next = self.sent % self.bodies.len().max(1);
        let no_event =
            |error: EventError| Fault::caused_by(Class::Input, "an event is none", &error);
        if let Some(body) = self.bodies.get(next) {
            self.sent += 1;
            sender.emit(body.clone()).map_err(no_event)?;
            return Ok(());
        }
        sender.emit(self.rows.next()).map_err(no_event)?;
        Ok(())
    }
}

/// Checks a file before the first event is sent. A receiver reads no further than id and type, and
/// would not notice a second event behind the first.
#[expect(clippy::disallowed_methods, reason = "nothing is made of it")]
fn one_event(path: &Path, body: &[u8]) -> Result<(), Fault> {
    let held = |what: &str| format!("{} holds {what}", path.display());
    let fault = if body.starts_with(b"\xef\xbb\xbf") {
        let message = held("no event: it begins with a byte order mark");
        Fault::new(Class::Input, message).advise("save it as UTF-8 without one")
    } else if let Err(error) = hookgate_testing::delivery(body) {
        Fault::caused_by(Class::Input, &held("no event"), &error)
            .advise("give a JSON object with an id and a type; hookgate send sends any body")
    } else if let Err(error) = serde_json::from_slice::<IgnoredAny>(body) {
        Fault::caused_by(
            Class::Input,
            &held("more than one event, or a broken one"),
            &error,
        )
        .advise("give each event in a file of its own; hookgate send sends any body")
    } else {
        return Ok(());
    };
    Err(fault)
}

fn sender(
    args: &SimulateArgs,
    seed: u64,
    sender_progress: UnboundedSender<SentEvent>,
) -> Result<SenderBuilder, Fault> {
    let url = target(&args.to)?.to_string();
    let secret = args.secret.first()?;
    let client = HttpClient::new()?;
    let subscription = Subscription::new(&args.subscription, &url, secret, client);
    let subscription = subscription
        .map_err(|error| Fault::caused_by(Class::Usage, "no such subscription can be", &error))?;
    let subscription = match &args.data_model {
        Some(id) => subscription.data_model(id),
        None => subscription,
    };
    let share = |percent: f64| percent / 100.0;
    let faults = NetworkFaults::seeded(seed)
        .refused(share(args.refused))
        .answers_lost(share(args.answers_lost))
        .duplicated(share(args.duplicated))
        .slow(share(args.slow), Duration::from_secs(8));
    let mut builder = Sender::builder()
        .subscription(subscription.at_once(args.concurrency.into()))
        .clock(SystemClock)
        .speed(args.speed);
    if [args.refused, args.answers_lost, args.duplicated, args.slow] != [0.0; 4] {
        builder = builder.faults(faults);
    }
    if args.attempts == RetrySchedule::SERVICE.attempts() {
        builder = builder.reading(Reading::EveryWait);
    }
    if args.first_timestamp {
        builder = builder.retry_timestamps(RetryTimestamps::First);
    }
    Ok(builder.on_attempt(move |event| drop(sender_progress.send(event.clone()))))
}

fn percent(text: &str) -> Result<f64, String> {
    let text = text.strip_suffix('%').unwrap_or(text);
    let percent: f64 = text.parse().map_err(|_| "a number is expected")?;
    if (0.0..=100.0).contains(&percent) {
        return Ok(percent);
    }
    Err("a number from 0 to 100 is expected".into())
}

/// The place where reports go.
pub(super) struct Lines {
    pub(super) progress: UnboundedReceiver<SentEvent>,
    /// The number of attempts before an event is discarded.
    pub(super) attempts: u32,
}

impl Lines {
    pub(super) fn print(&self, event: &SentEvent, out: &mut Out) -> Result<(), Fault> {
        out.say(&text(event, self.attempts), &value(event))?;
        Ok(out.flush()?)
    }
}

/// The last attempt, as a line.
fn text(event: &SentEvent, attempts: u32) -> String {
    let Some(last) = event.attempts.last() else {
        return String::new();
    };
    let day = iso8601(last.at);
    let time = day.get(11..19).unwrap_or(&day);
    let (id, event_type) = (printable(&event.id), printable(&event.event_type));
    let end = last.end.to_string();
    let millis = last.elapsed.as_millis();
    let mut line = format!(
        "{time} {id} {event_type}: {} in {millis} ms",
        printable(&end)
    );
    if last.replayed {
        line += ", handled before";
    }
    if let Some(fault) = last.fault {
        line += &format!(" ({fault})");
    }
    let number = last.number;
    match (event.disposition, event.next_wait) {
        (Disposition::Delivered, _) if number == 1 => {}
        (Disposition::Delivered, _) => line += &format!(", delivered at attempt {number}"),
        (Disposition::Discarded, _) => line += &format!(", DISCARDED after attempt {number}"),
        (_, Some(wait)) => {
            let wait = durations::show(wait);
            line += &format!(", attempt {number} of {attempts}, again in {wait}");
        }
        (_, None) => {}
    }
    line
}

fn value(event: &SentEvent) -> serde_json::Value {
    let last = event.attempts.last();
    json!({
        "kind": "attempt",
        "eventId": event.id,
        "eventType": event.event_type,
        "subscription": event.subscription,
        "disposition": disposition(event.disposition),
        "attempt": last.map(|last| last.number),
        "at": last.map(|last| iso8601(last.at)),
        "timestamp": last.map(|last| last.timestamp.as_i64()),
        "status": last.and_then(|last| last.end.status()),
        "end": last.map(|last| last.end.to_string()),
        "elapsedMs": last.map(|last| last.elapsed.as_millis()),
        "replayed": last.map(|last| last.replayed),
        "fault": last.and_then(|last| last.fault).map(|fault| fault.to_string()),
        "nextWaitMs": event.next_wait.map(|wait| wait.as_millis()),
    })
}

fn disposition(disposition: Disposition) -> &'static str {
    match disposition {
        Disposition::Delivered => "delivered",
        Disposition::Discarded => "discarded",
        _ => "under_way",
    }
}

/// `made_up`: the events follow from the seed, and are of no file.
pub(super) fn summary(
    report: &SenderReport,
    seed: u64,
    made_up: bool,
    elapsed: Duration,
    out: &mut Out,
) -> Result<(), Fault> {
    let count = |events: &mut dyn Iterator<Item = &SentEvent>| events.count();
    let value = json!({
        "kind": "summary",
        "seed": seed,
        "events": report.events().len(),
        "delivered": count(&mut report.delivered()),
        "discarded": report.discarded().map(|event| &event.id).collect::<Vec<_>>(),
        "underWay": report.under_way().map(|event| &event.id).collect::<Vec<_>>(),
        "attempts": report.attempts(),
        "elapsedMs": elapsed.as_millis(),
    });
    let took = durations::show(Duration::from_secs(elapsed.as_secs()));
    let mut text = format!("\n{report}\n{took}");
    if made_up {
        text += &format!("; the same events again: --seed {seed}");
    }
    if report.under_way().next().is_some() {
        text += "\nwhat is under way stays undelivered: the retries ended with this program";
    }
    // The causes come from the system and the names from the sender. They are escaped line by line,
    // so that the line breaks stay.
    let lines: Vec<_> = text
        .lines()
        .map(|line| printable(line).into_owned())
        .collect();
    out.say(&lines.join("\n"), &value)?;
    Ok(out.flush()?)
}
