//! A log read line by line.

use std::io::{self, BufRead, Read as _};

use super::entry::LoggedDelivery;
use super::line::Mark;
use crate::error::LogError;

/// A line that is longer is no delivery's: a file without an end, such as a device, must not take all memory.
const LONGEST_LINE: u64 = 256 << 20;

/// The deliveries of a log, one after another: for logs that are larger than memory. Made by
/// [`DeliveryLog::lines`](super::DeliveryLog::lines).
///
/// A line that is no delivery is an error that names it, and the iterator can go on behind it. Three are none: a last line that was
/// not written to its end, since a recorder that is killed leaves one; such a line further up that a recorder has found when it opened
/// the file again, and marked; and what a recorder says of deliveries that it had to drop. What was met of these can be asked for
/// once the lines are read.
///
/// A line that is longer than 256 MiB ends it with an error. Line breaks may be `\n` or `\r\n`. Empty lines are passed over, and so is a byte order mark at the beginning.
///
/// ```
/// use hookgate::UnixSeconds;
/// use hookgate::testing::log::{DeliveryLog, LoggedDelivery};
///
/// let no_headers: [(&str, &str); 0] = [];
/// let line = LoggedDelivery::new(UnixSeconds::new(1_763_690_000), no_headers, "{}").to_line();
/// let log = format!("{line}\n{{\"dropped\":2}}\n{line}\n{}", &line[..20]);
///
/// let mut lines = DeliveryLog::lines(log.as_bytes());
/// assert_eq!(lines.by_ref().filter_map(Result::ok).count(), 2);
/// assert_eq!((lines.dropped(), lines.ended_torn()), (2, true));
/// ```
#[derive(Debug)]
pub struct LogLines<R> {
    lines: Numbered<R>,
    /// Read already, to see whether the line before it is to be excused.
    next: Option<Line>,
    dropped: u64,
    torn: u64,
    ended_torn: bool,
    ended: bool,
}

#[derive(Debug)]
struct Numbered<R> {
    reader: R,
    number: u64,
}

#[derive(Debug)]
struct Line {
    number: u64,
    text: Vec<u8>,
    /// Whether there is a line break behind it.
    whole: bool,
}

impl<R: BufRead> LogLines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            lines: Numbered { reader, number: 0 },
            next: None,
            dropped: 0,
            torn: 0,
            ended_torn: false,
            ended: false,
        }
    }

    /// How many deliveries the recorder says it had to drop, so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// How many lines further up were not written to their end, so far. A delivery may be missing for
    /// each: after an error, a recorder writes the whole line again behind it, and after its end nobody does.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Whether the last line was not written to its end, or is being written at this moment. It is known when the lines have ended.
    #[must_use]
    pub fn ended_torn(&self) -> bool {
        self.ended_torn
    }

    /// The number of the line that was read last, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.lines.number - u64::from(self.next.is_some())
    }

    fn next_line(&mut self) -> Result<Option<Line>, LogError> {
        match self.next.take() {
            Some(line) => Ok(Some(line)),
            None => self.lines.read(),
        }
    }

    /// Whether a line that is no delivery is one that was torn, and marked by who came after.
    fn is_marked_as_torn(&mut self) -> Result<bool, LogError> {
        let mark = Mark::Torn(true).to_line();
        while let Some(line) = self.lines.read()? {
            if line.text == mark.as_bytes() {
                self.torn += 1;
                return Ok(true);
            }
            // The mark itself can be torn, and marked behind that. What a delivery begins with as well is none.
            if line.text.len() < 3 || !mark.as_bytes().starts_with(&line.text) {
                self.next = Some(line);
                return Ok(false);
            }
            if !line.whole {
                self.ended_torn = true;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn delivery(&mut self) -> Result<Option<LoggedDelivery>, LogError> {
        while let Some(line) = self.next_line()? {
            let error = match LoggedDelivery::from_line(&line.text) {
                Ok(delivery) => return Ok(Some(delivery)),
                Err(error) => error,
            };
            match Mark::from_line(&line.text) {
                Some(Mark::Dropped(more)) => self.dropped = self.dropped.saturating_add(more),
                // Behind a line that lacked no more than its line break.
                Some(Mark::Torn(_)) => {}
                None if !line.whole => self.ended_torn = true,
                None if self.is_marked_as_torn()? => {}
                None => return Err(error.at_line(line.number)),
            }
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for LogLines<R> {
    type Item = Result<LoggedDelivery, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let delivery = self.delivery();
        // What can't be read will not be read by asking again; a bad line has others behind it.
        self.ended = match &delivery {
            Ok(delivery) => delivery.is_none(),
            Err(error) => error.line().is_none(),
        };
        delivery.transpose()
    }
}

impl<R: BufRead> Numbered<R> {
    /// The next line that is not empty.
    fn read(&mut self) -> Result<Option<Line>, LogError> {
        loop {
            let mut text = Vec::new();
            let mut line = self.reader.by_ref().take(LONGEST_LINE + 1);
            let read = line.read_until(b'\n', &mut text);
            if read.map_err(LogError::unreadable)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if text.len() as u64 > LONGEST_LINE {
                let number = self.number;
                let long = format!("line {number} is longer than {} MiB", LONGEST_LINE >> 20);
                let error = io::Error::new(io::ErrorKind::InvalidData, long);
                return Err(LogError::unreadable(error));
            }
            let whole = text.pop_if(|last| *last == b'\n').is_some();
            text.pop_if(|last| *last == b'\r');
            if self.number == 1 && text.starts_with("\u{feff}".as_bytes()) {
                text.drain(..3);
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(Line {
                    number: self.number,
                    text,
                    whole,
                }));
            }
        }
    }
}
