//! The sources of a delivery: files, or a line of a log.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use hookgate::verify::EVENT_ID;
use hookgate::{
    Scheme,
    clock::{Clock, SystemClock, UnixSeconds},
    event::Date,
};
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::read;
use hookgate_testing::read::ReadErrorKind;

use crate::fault::{Class, Fault};

/// The delivery, from one of two places.
#[derive(clap::Args)]
#[command(next_help_heading = "Delivery")]
pub(crate) struct DeliveryArgs {
    /// Read the headers from this file: a raw HTTP request, its head alone, or lines of
    /// `Name: value`. `-` is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    headers: Option<PathBuf>,
    /// Read the body from this file, byte for byte, in place of the one behind the headers. `-` is
    /// standard input
    #[arg(long, value_name = "FILE", conflicts_with = "log")]
    body: Option<PathBuf>,
    /// Take the delivery from this log
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Which line of the log, from 1
    #[arg(long, value_name = "N", requires = "log", value_parser = clap::value_parser!(u64).range(1..))]
    line: Option<u64>,
    /// Which event of the log, by its id
    #[arg(long, value_name = "ID", requires = "log", conflicts_with = "line")]
    id: Option<String>,
    /// When it was received: Unix seconds, or ISO 8601 with a zone [default: the log's time, else
    /// now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<UnixSeconds>,
}

impl DeliveryArgs {
    /// The bytes received.
    pub(crate) fn delivery(&self) -> Result<LoggedDelivery, Fault> {
        let now = self.at.unwrap_or_else(|| SystemClock.now());
        let mut delivery = match (&self.headers, &self.log) {
            (Some(path), _) => self.of_headers(path, now)?,
            (None, Some(path)) => self.of_log(path)?,
            (None, None) => {
                return Err(Fault::new(Class::Usage, "no delivery is given").advise(
                    "give --headers FILE and --body FILE, or --log FILE with --line N or --id ID",
                ));
            }
        };
        if let Some(at) = self.at {
            delivery.received_at = at;
        }
        Ok(delivery)
    }

    fn of_headers(&self, path: &Path, now: UnixSeconds) -> Result<LoggedDelivery, Fault> {
        let both = self.body.as_deref() == Some(Path::new("-")) && path == Path::new("-");
        if both {
            return Err(Fault::new(
                Class::Usage,
                "headers and body can't both come from standard input",
            )
            .advise("give the whole request there: the head, an empty line, the body"));
        }
        let text = bytes_of("the headers", path)?;
        let mut delivery = read::http(&text, now).map_err(|error| {
            let advice = match error.kind() {
                ReadErrorKind::BadChunk => "give the decoded body in a file of its own: --body FILE",
                _ => "write a header a line, `Name: value`; the body goes behind an empty line, or to --body FILE",
            };
            let place = match path.to_str() {
                Some("-") => "standard input".to_owned(),
                _ => path.display().to_string(),
            };
            let message = format!("the headers in {place}");
            Fault::caused_by(Class::Input, &message, &error).advise(advice)
        })?;
        match &self.body {
            Some(body) => delivery.body = Some(bytes_of("the body", body)?.into()),
            None if delivery.body.is_none() => {
                return Err(Fault::new(Class::Usage, "there are headers and no body")
                    .advise("give --body FILE; for an empty body, --body /dev/null"));
            }
            None => {}
        }
        Ok(delivery)
    }

    /// Reads the log line by line, so that an invalid line elsewhere in it does no harm.
    fn of_log(&self, path: &Path) -> Result<LoggedDelivery, Fault> {
        let origin = path.display();
        let cannot = |error: &io::Error| {
            Fault::caused_by(
                Class::Input,
                &format!("the log {origin} can't be read"),
                error,
            )
            .advise("check the path; a log has one delivery a line")
        };
        let mut lines = BufReader::new(File::open(path).map_err(|error| cannot(&error))?);
        let mut found = Vec::new();
        let mut last = 0;
        for number in 1_u64.. {
            let mut line = Vec::new();
            let read = lines
                .by_ref()
                .take(LONGEST + 1)
                .read_until(b'\n', &mut line);
            let read = read.and_then(|_| not_too_long(&line));
            read.map_err(|error| cannot(&error))?;
            if line.is_empty() {
                break;
            }
            last = number;
            if self.line.is_some_and(|wanted| wanted != number) || line.trim_ascii().is_empty() {
                continue;
            }
            match (LoggedDelivery::from_line(&line), self.line, &self.id) {
                (Ok(delivery), _, Some(id)) if !has_id(&delivery, id) => {}
                (Ok(delivery), ..) => found.push((number, delivery)),
                (Err(error), Some(_), _) => {
                    let what = format!("line {number} of {origin}");
                    return Err(
                        Fault::caused_by(Class::Input, &what, &error).advise(format!(
                            "list the deliveries of the log: hookgate log list {origin}"
                        )),
                    );
                }
                (Err(_), None, _) => {}
            }
        }
        let numbers: Vec<_> = found.iter().map(|(number, _)| number.to_string()).collect();
        let none = |what: String| {
            Fault::new(Class::Input, what).advise(format!(
                "the log has {last} lines; name one: --line N, or --id ID"
            ))
        };
        let ambiguous = |what: String| {
            let refused: Vec<_> = found
                .iter()
                .filter_map(|(number, delivery)| {
                    let answer = delivery.answer.as_ref()?;
                    let (status, outcome) = (answer.status, &answer.outcome);
                    let is_refused = (400..500).contains(&status);
                    is_refused.then(|| format!("{number} ({status} {outcome})"))
                })
                .collect();
            let advice = match refused.is_empty() {
                true => format!("say which: --line N, of {}", first_few(&numbers)),
                false => format!("say which: --line N; refused: {}", first_few(&refused)),
            };
            Fault::new(Class::Input, what).advise(advice)
        };
        match (found.len(), &self.id, self.line) {
            (1, ..) => found
                .into_iter()
                .next()
                .map(|(_, delivery)| delivery)
                .ok_or_else(|| none(String::new())),
            (0, Some(id), _) => Err(none(format!("no delivery in {origin} is of event {id}"))),
            (0, None, Some(line)) => Err(none(format!("{origin} has no delivery at line {line}"))),
            (0, None, None) => Err(none(format!("there is no delivery in {origin}"))),
            (many, Some(id), _) => Err(ambiguous(format!(
                "{many} deliveries in {origin} are of event {id}"
            ))),
            (many, None, _) => Err(ambiguous(format!("{many} deliveries are in {origin}"))),
        }
    }
}

/// The first of them, and how many more there are.
fn first_few(all: &[String]) -> String {
    const MAX: usize = 20;
    let first = all.get(..MAX.min(all.len())).unwrap_or_default();
    match all.len().saturating_sub(MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// The id is named in the body or in the header, and the two may differ.
fn has_id(delivery: &LoggedDelivery, id: &str) -> bool {
    let signed = Scheme::ALL.iter().filter_map(|row| row.signed_id_header());
    let mut headers = signed.chain([EVENT_ID]);
    delivery.event_id().as_deref() == Some(id)
        || headers.any(|name| delivery.header(name).is_some_and(|header| header == id))
}

/// A file without an end, such as a device, must not take all memory.
const LONGEST: u64 = 256 << 20;

fn not_too_long(bytes: &[u8]) -> io::Result<()> {
    if bytes.len() as u64 > LONGEST {
        let long = format!("it is longer than {} MiB", LONGEST >> 20);
        return Err(io::Error::new(io::ErrorKind::InvalidData, long));
    }
    Ok(())
}

/// All of a file, or of standard input.
pub(crate) fn bytes_of(what: &str, path: &Path) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = match path.to_str() {
        Some("-") => io::stdin().lock().take(LONGEST + 1).read_to_end(&mut bytes),
        _ => File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes)),
    };
    let read = read.and_then(|_| not_too_long(&bytes));
    read.map_err(|error| {
        let message = format!("{what} in {} can't be read", path.display());
        Fault::caused_by(Class::Input, &message, &error)
            .advise("check the path; `-` is standard input")
    })?;
    Ok(bytes)
}

/// Unix seconds, or an instant as ISO 8601 writes it.
pub(crate) fn time(text: &str) -> Result<UnixSeconds, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(UnixSeconds::new(seconds));
    }
    let date = Date::parse(text).ok();
    let seconds = date.and_then(|date| date.unix_seconds().ok());
    seconds.ok_or_else(|| {
        "write Unix seconds, 1763690000, or ISO 8601 with a zone, 2025-11-21T01:53:20Z".to_owned()
    })
}
