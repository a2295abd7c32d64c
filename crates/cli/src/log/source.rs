//! The log, and the choice of its deliveries.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::time::Duration;

use hookgate_record::LoggedDelivery;
use hookgate_testing::log::{DeliveryLog, LogError, LogLines, LoggedDeliveryExt, UnverifiedHead};

use crate::fault::{Class, Fault, warn};
use crate::secrets::SchemeArgs;

/// How long a followed log is left alone at its end.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Which log.
#[derive(clap::Args)]
pub(super) struct Source {
    /// The log: a file, or `-` for standard input
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Read the rotated files as well, the oldest first: LOG.2, LOG.1, LOG. Lines are numbered
    /// across all of them
    #[arg(long)]
    rotated: bool,
    #[command(flatten)]
    scheme: SchemeArgs,
}

/// The number of a line, or an event's id.
#[derive(Clone, Debug)]
pub(super) enum Which {
    Line(u64),
    Event(String),
}

/// Which delivery.
#[derive(clap::Args)]
pub(super) struct One {
    /// The number of its line, or its event's id
    #[arg(value_name = "LINE|ID", required_unless_present_any = ["line", "id"])]
    which: Option<Which>,
    /// The number of its line, as for the other commands
    #[arg(long, value_name = "N", conflicts_with = "which", value_parser = clap::value_parser!(u64).range(1..))]
    line: Option<u64>,
    /// Its event's id, as for the other commands
    #[arg(long, value_name = "ID", conflicts_with_all = ["which", "line"])]
    id: Option<String>,
}

impl One {
    pub(super) fn chosen(&self) -> Which {
        match (&self.which, &self.id) {
            (Some(which), _) => which.clone(),
            (None, Some(id)) => Which::Event(id.clone()),
            (None, None) => Which::Line(self.line.unwrap_or_default()),
        }
    }
}

/// Whatever is not a number is an id. Clap reads arguments by it.
impl From<String> for Which {
    fn from(text: String) -> Self {
        text.parse().map_or(Self::Event(text), Self::Line)
    }
}

impl Source {
    /// What an unverified delivery says about itself.
    pub(super) fn head_of(&self, delivery: &LoggedDelivery) -> UnverifiedHead {
        delivery.read_by(self.scheme.scheme)
    }

    fn name(&self) -> String {
        self.log.display().to_string()
    }

    /// Gives each delivery with its line number to `take`, until `take` has enough; warns of lines
    /// that are missing. Where the log is followed, it has no end.
    pub(super) fn each(
        &self,
        follow: bool,
        mut take: impl FnMut(u64, LoggedDelivery) -> Result<Next, Fault>,
    ) -> Result<(), Fault> {
        let mut lines = self.lines(follow)?;
        while let Some(delivery) = lines.next() {
            let delivery = delivery.map_err(|error| self.fault(&error))?;
            if let Next::Enough = take(lines.line(), delivery)? {
                return Ok(());
            }
        }
        self.warn(&lines);
        Ok(())
    }

    /// The one delivery of that line, or of that event.
    pub(super) fn find(&self, which: &Which) -> Result<LoggedDelivery, Fault> {
        let mut found = Vec::new();
        self.each(false, |line, delivery| {
            let is_it = match which {
                Which::Line(wanted) => *wanted == line,
                Which::Event(id) => self.head_of(&delivery).event_id.as_ref() == Some(id),
            };
            if is_it {
                found.push((line, delivery));
            }
            Ok(match which {
                Which::Line(wanted) if line >= *wanted => Next::Enough,
                _ => Next::More,
            })
        })?;
        let lines: Vec<_> = found.iter().map(|(line, _)| line.to_string()).collect();
        match (found.pop(), which) {
            (Some((_, only)), _) if found.is_empty() => Ok(only),
            (None, Which::Line(line)) => Err(self.none(&format!("at line {line}"))),
            (None, Which::Event(id)) => Err(self.none(&format!("of event {id}"))),
            (Some(_), _) => {
                let message = format!(
                    "{} deliveries in {} are of that event",
                    lines.len(),
                    self.name()
                );
                let advice = format!("name one by the number of its line: {}", lines.join(", "));
                Err(Fault::new(Class::Input, message).advise(advice))
            }
        }
    }

    fn lines(&self, follow: bool) -> Result<LogLines<Box<dyn BufRead + Send>>, Fault> {
        let unreadable = |error: &LogError| self.fault(error);
        if self.rotated {
            return DeliveryLog::lines_of_rotated(&self.log).map_err(|error| unreadable(&error));
        }
        let reader: Box<dyn BufRead + Send> = match self.log.to_str() {
            Some("-") => Box::new(BufReader::new(io::stdin())),
            _ => {
                let file = File::open(&self.log).map_err(|error| {
                    let message = format!("the log {} can't be read", self.name());
                    Fault::caused_by(Class::Input, &message, &error)
                        .advise("check the path; `-` is standard input")
                })?;
                match follow {
                    true => Box::new(BufReader::new(Followed {
                        path: self.log.clone(),
                        file,
                    })),
                    false => Box::new(BufReader::new(file)),
                }
            }
        };
        Ok(DeliveryLog::lines(reader))
    }

    fn none(&self, what: &str) -> Fault {
        let message = format!("there is no delivery {what} in {}", self.name());
        Fault::new(Class::Input, message).advise(format!(
            "list the deliveries of the log: hookgate log list {}",
            self.name()
        ))
    }

    fn fault(&self, error: &LogError) -> Fault {
        let fault = Fault::caused_by(Class::Input, &self.name(), error);
        match error.line() {
            Some(1) => fault.advise(format!(
                "a delivery log has one delivery a line, as JSON; if this is one, take the line out: sed '1d' {}",
                self.name()
            )),
            Some(line) => fault.advise(format!(
                "take the line out to read the rest: sed '{line}d' {}",
                self.name()
            )),
            None => fault.advise("check the path; `-` is standard input"),
        }
    }

    fn warn<R: BufRead>(&self, lines: &LogLines<R>) {
        let name = self.name();
        if lines.dropped() > 0 {
            let message = format!(
                "{} deliveries are missing in {name}: the recorder dropped them",
                lines.dropped()
            );
            warn(
                &message,
                "its queue was full: give it a larger one, or a faster disk",
            );
        }
        if lines.torn() > 0 {
            let message = format!("{} lines of {name} are incomplete", lines.torn());
            warn(
                &message,
                "a process was killed, or its disk was full; the other lines are complete",
            );
        }
        if lines.ended_torn() {
            let message = format!("the last line of {name} is incomplete");
            warn(
                &message,
                "it is being written, or its process was killed; the other lines are complete",
            );
        }
    }
}

/// A file that waits at its end for more, and goes on with the next one where it was rotated.
struct Followed {
    path: PathBuf,
    file: File,
}

impl Read for Followed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.file.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let next = File::open(&self.path)
                .ok()
                .filter(|next| !is_same(&self.file, next));
            let Some(next) = next else {
                std::thread::sleep(LOOK_AGAIN);
                continue;
            };
            // The recorder may still have written to the old file before the rotation.
            let read = self.file.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.file = next;
        }
    }
}

/// Whether both are one file.
fn is_same(file: &File, next: &File) -> bool {
    let (Ok(one), Ok(other)) = (file.metadata(), next.metadata()) else {
        return true;
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }
    #[cfg(not(unix))]
    {
        one.created().ok() == other.created().ok()
    }
}

/// Whether there is more to look for.
pub(super) enum Next {
    More,
    Enough,
}
