//! Reads a log line by line.

use std::io::{BufRead, Read as _};
use std::{fmt, io};

use hookgate_record::{LoggedDelivery, TORN_LINE};

use super::line::{Mark, is_beginning};
use super::{LogError, LogErrorKind, line};

/// The longest line that is read. A longer one is not a log, and would take all memory. A body of
/// 32 MiB fits, even where every byte of it is written as six bytes.
const LONGEST: usize = 256 << 20;

/// Iterates over the deliveries of a log, for logs that are larger than memory. Made by
/// [`DeliveryLog::lines`](super::DeliveryLog::lines).
///
/// A line that is not a delivery is an error with the number of the line, and the iterator can go
/// on after it. Three cases are no error: an incomplete last line that begins as a recorder writes
/// it, because a recorder that is killed leaves one; an incomplete line before the last one that a
/// recorder found when it opened the file again, and marked; and a recorder's note about deliveries
/// that it had to drop. Their numbers are available after the lines are read. A line of more than
/// 256 MiB is an error too, and is skipped without being kept. A line of more than twice that ends
/// the log.
///
/// Line breaks may be `\n` or `\r\n`. Empty lines are skipped, and so is a byte order mark at the
/// beginning.
///
/// ```
/// use hookgate::clock::UnixSeconds;
/// use hookgate_record::{LoggedDelivery, TORN_LINE};
/// use hookgate_testing::log::DeliveryLog;
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
    /// A line that was read ahead, to see whether the line before it is marked as incomplete.
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
    /// Whether a line break follows it.
    whole: bool,
    /// The line was longer than `longest`, and its text is not kept.
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

    /// The number of deliveries that the recorder had to drop, so far.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of incomplete lines before the last line, so far. Up to one delivery is missing
    /// for each: after an error, a recorder writes the whole line again; after a recorder was
    /// killed, the line is not written again.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Returns whether the last line is incomplete, or is being written at this moment. The result
    /// is known when the iterator has ended.
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

    /// Returns whether a line that is not a delivery is incomplete, and marked as such by the next
    /// recorder.
    fn is_marked_as_torn(&mut self) -> Result<bool, LogError> {
        let mark = TORN_LINE.as_bytes();
        while let Some(line) = self.lines.read()? {
            if line.text == mark {
                self.torn += 1;
                return Ok(true);
            }
            // The mark itself can be incomplete, with another mark after it. The beginning of a
            // delivery is never taken for such a mark.
            if line.too_long || line.text.len() < 3 || !mark.starts_with(&line.text) {
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
            let error = match line::read(&line.text) {
                Ok(delivery) => return Ok(Some(delivery)),
                Err(error) => error,
            };
            match Mark::from_line(&line.text) {
                Some(Mark::Dropped(more)) => self.dropped = self.dropped.saturating_add(more),
                // This mark follows a line that lacked only its line break.
                Some(Mark::Torn(_)) => {}
                None if !line.whole && is_beginning(&line.text) => self.ended_torn = true,
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
        // An unreadable source stays unreadable at the next call. A bad line has other lines after
        // it.
        self.ended = match &delivery {
            Ok(delivery) => delivery.is_none(),
            Err(error) => error.line().is_none(),
        };
        delivery.transpose()
    }
}

impl<R: BufRead> Numbered<R> {
    /// Reads the next line that is not empty.
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

    /// Reads up to the next line break and keeps nothing. Returns whether there was one.
    ///
    /// # Errors
    /// There is no line break within the length of another line: a file without an end, such as a
    /// device, is not a log.
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

/// Shows nothing of the lines, nor of their source, which may be a text that holds them.
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
    use hookgate::clock::UnixSeconds;

    fn line() -> String {
        let headers = [("x-service-signature", "sha256=0a0b")];
        LoggedDelivery::new(UnixSeconds::new(7), headers, "Ada Lovelace").to_line()
    }

    #[test]
    fn a_line_that_is_too_long_is_named_and_passed_over() {
        let line = line();
        // After it come a complete line, and a line of the maximum length.
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
        // A long line without a line break is not counted as an incomplete delivery either.
        let mut lines = LogLines::new(log.as_bytes().split_at(line.len() * 5 / 2).0);
        lines.lines.longest = line.len();
        let kinds: Vec<_> = lines.by_ref().map(|read| read.is_ok()).collect();
        assert_eq!((kinds, lines.ended_torn()), (vec![true, false], false));
    }

    // fault X10: a file that is no log and has no line break passes for a log whose last line is incomplete
    #[test]
    fn a_last_line_that_no_recorder_begins_is_not_an_incomplete_delivery() {
        for text in ["hello", "{}", r#"{"id":"evt_1"}"#, r#"["#] {
            let log = format!("{}\n{text}", line());
            let read: Vec<_> = LogLines::new(log.as_bytes()).collect();
            assert_eq!(read[1].as_ref().unwrap_err().line(), Some(2), "{text}");
        }
        for text in ["{", r#"{"rec"#, &line()[..40], r#"{"dropped":"#, r#"{"to"#] {
            let mut lines = LogLines::new(text.as_bytes());
            assert!(lines.next().is_none() && lines.ended_torn(), "{text}");
        }
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
        assert!(lines.next().unwrap().is_err()); // the next line was read ahead to see why
        assert!(lines.next.is_some());
        let shown = format!("{lines:?}");
        for hidden in ["Ada", "sha256", "65, 100, 97"] {
            assert!(!shown.contains(hidden), "{shown}");
        }
    }
}
