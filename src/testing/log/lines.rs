//! A log read line by line.

use std::fmt;
use std::io::{self, BufRead, Read as _};

use super::entry::LoggedDelivery;
use super::line::Mark;
use crate::error::{LogError, LogErrorKind};

/// The longest line that is read: what lies behind that is no log, and would take all memory. A body of 32 MiB fits, even where every
/// byte of it is written as six.
const LONGEST: usize = 256 << 20;

/// The deliveries of a log, one after another: for logs that are larger than memory. Made by
/// [`DeliveryLog::lines`](super::DeliveryLog::lines).
///
/// A line that is no delivery is an error that names it, and the iterator can go on behind it. Three are none: a last line that was
/// not written to its end, since a recorder that is killed leaves one; such a line further up that a recorder has found when it opened
/// the file again, and marked; and what a recorder says of deliveries that it had to drop. What was met of these can be asked for
/// once the lines are read. A line of more than 256 MiB is an error too, and is passed over without being kept; one
/// of more than twice that ends the log.
///
/// Line breaks may be `\n` or `\r\n`. Empty lines are passed over, and so is a byte order mark at the beginning.
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
pub struct LogLines<R> {
    lines: Numbered<R>,
    /// Read already, to see whether the line before it is to be excused.
    next: Option<Line>,
    dropped: u64,
    torn: u64,
    ended_torn: bool,
    ended: bool,
}

struct Numbered<R> {
    reader: R,
    number: u64,
    longest: usize,
}

struct Line {
    number: u64,
    text: Vec<u8>,
    /// Whether there is a line break behind it.
    whole: bool,
    /// It was longer than is read, and its text is not here.
    too_long: bool,
}

impl<R: BufRead> LogLines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            lines: Numbered {
                reader,
                number: 0,
                longest: LONGEST,
            },
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
            if line.too_long || line.text.len() < 3 || !mark.as_bytes().starts_with(&line.text) {
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
            if line.too_long {
                let error = LogError::new(LogErrorKind::BadLine, "it is too long to be read");
                return Err(error.at_line(line.number));
            }
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
            let mut limited = (&mut self.reader).take(self.longest as u64 + 1);
            let read = limited.read_until(b'\n', &mut text);
            if read.map_err(LogError::unreadable)? == 0 {
                return Ok(None);
            }
            self.number += 1;
            let mut whole = text.pop_if(|last| *last == b'\n').is_some();
            if !whole && text.len() > self.longest {
                drop(text);
                whole = self.skip_line().map_err(LogError::unreadable)?;
                return Ok(Some(Line {
                    number: self.number,
                    text: Vec::new(),
                    whole,
                    too_long: true,
                }));
            }
            text.pop_if(|last| *last == b'\r');
            if self.number == 1 && text.starts_with("\u{feff}".as_bytes()) {
                text.drain(..3);
            }
            if !text.trim_ascii().is_empty() {
                return Ok(Some(Line {
                    number: self.number,
                    text,
                    whole,
                    too_long: false,
                }));
            }
        }
    }

    /// Reads up to the next line break and keeps nothing. Says whether there was one.
    ///
    /// # Errors
    /// There is none within another line's length: a file without an end, such as a device, is no log.
    fn skip_line(&mut self) -> io::Result<bool> {
        let mut skipped = 0;
        while skipped <= self.longest {
            let buffer = match self.reader.fill_buf() {
                Ok([]) => return Ok(false),
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let (read, ended) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            self.reader.consume(read);
            if ended {
                return Ok(true);
            }
            skipped += read;
        }
        let limit = self.longest >> 20;
        let endless = format!(
            "line {} is longer than {limit} MiB, and has no end",
            self.number
        );
        Err(io::Error::new(io::ErrorKind::InvalidData, endless))
    }
}

/// Shows nothing of what stands in the lines, nor of where they come from, which may be a text that holds them.
impl<R> fmt::Debug for LogLines<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogLines")
            .field("lines_read", &self.lines.number)
            .field("dropped", &self.dropped)
            .field("torn", &self.torn)
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixSeconds;

    fn line() -> String {
        let headers = [("x-service-signature", "sha256=0a0b")];
        LoggedDelivery::new(UnixSeconds::new(7), headers, "Ada Lovelace").to_line()
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_passed_over() {
        let line = line();
        // Behind it comes a whole one, and one that is as long as may be.
        let log = format!("{line}\n{}\n{line}\r\n", "x".repeat(line.len() * 3 / 2));
        let mut lines = LogLines::new(io::BufReader::with_capacity(16, log.as_bytes()));
        lines.lines.longest = line.len() + 1;
        assert!(lines.next().unwrap().is_ok());
        let error = lines.next().unwrap().unwrap_err();
        assert_eq!(
            (error.kind(), error.line()),
            (LogErrorKind::BadLine, Some(2))
        );
        assert!(lines.next().unwrap().is_ok());
        assert!(lines.next().is_none());
        // Without an end it is no torn delivery either.
        let mut lines = LogLines::new(log.as_bytes().split_at(line.len() * 5 / 2).0);
        lines.lines.longest = line.len();
        let kinds: Vec<_> = lines.by_ref().map(|read| read.is_ok()).collect();
        assert_eq!((kinds, lines.ended_torn()), (vec![true, false], false));
    }

    #[test]
    fn a_line_without_an_end_ends_the_log() {
        let endless = io::BufReader::new(io::repeat(b'x'));
        let mut lines = LogLines::new(endless);
        lines.lines.longest = 1_000;
        let error = lines.next().unwrap().unwrap_err();
        assert_eq!(error.kind(), LogErrorKind::Unreadable);
        assert!(lines.next().is_none());
    }

    #[test]
    fn debug_shows_nothing_of_the_lines() {
        let log = format!("{{}}\n{}\n", line());
        let mut lines = LogLines::new(log.as_bytes());
        assert!(lines.next().unwrap().is_err()); // and the line behind it was read to see why
        assert!(lines.next.is_some());
        let shown = format!("{lines:?}");
        for hidden in ["Ada", "sha256", "65, 100, 97"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
