//! A whole log, read into memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use hookgate_record::LoggedDelivery;

use super::LogError;
use super::lines::LogLines;

/// The deliveries of a log, in the order in which they were logged.
///
/// ```
/// use hookgate::clock::UnixSeconds;
/// use hookgate_record::LoggedDelivery;
/// use hookgate_testing::DeliveryLog;
///
/// let no_headers: [(&str, &str); 0] = [];
/// let at = |second| LoggedDelivery::new(UnixSeconds::new(second), no_headers, "{}");
/// let log: DeliveryLog = [at(1_763_690_000), at(1_763_690_060)].into_iter().collect();
///
/// let mut file = Vec::new();
/// log.write_to(&mut file)?;
/// let again = DeliveryLog::read(&*file)?;
/// assert_eq!(again, log);
/// assert_eq!(again.deliveries()[1].received_at.as_i64(), 1_763_690_060);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryLog {
    deliveries: Vec<LoggedDelivery>,
    dropped: u64,
    torn: u64,
    ended_torn: bool,
}

impl DeliveryLog {
    /// Reads a file.
    ///
    /// # Errors
    /// `Unreadable`, or `BadLine` with the number of the line.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, LogError> {
        File::open(path)
            .map_err(LogError::unreadable)
            .and_then(|file| Self::read(BufReader::new(file)))
    }

    /// Reads a file and, before it, the files that a [`Recorder`](hookgate_record::Recorder) has
    /// rotated: `path.3`, `path.2`, `path.1`, `path`, those that exist. The line numbers run
    /// through all files.
    ///
    /// # Errors
    /// As [`open`](Self::open). `Unreadable` where none of the files exists.
    pub fn open_rotated(path: impl AsRef<Path>) -> Result<Self, LogError> {
        Self::read(rotated_reader(path.as_ref()).map_err(LogError::unreadable)?)
    }

    /// Reads lines from a reader.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(lines: impl BufRead) -> Result<Self, LogError> {
        let mut lines = Self::lines(lines);
        let deliveries = lines.by_ref().collect::<Result<_, _>>()?;
        Ok(Self {
            deliveries,
            dropped: lines.dropped(),
            torn: lines.torn(),
            ended_torn: lines.ended_torn(),
        })
    }

    /// Reads lines from a reader, one line per call: for logs that are larger than memory.
    pub fn lines<R: BufRead>(lines: R) -> LogLines<R> {
        LogLines::new(lines)
    }

    /// Reads all files that [`open_rotated`](Self::open_rotated) reads, one line per call.
    ///
    /// # Errors
    /// `Unreadable` where none of the files exists, or one of them can't be opened.
    pub fn lines_of_rotated(
        path: impl AsRef<Path>,
    ) -> Result<LogLines<Box<dyn BufRead + Send>>, LogError> {
        let reader = rotated_reader(path.as_ref());
        reader.map(Self::lines).map_err(LogError::unreadable)
    }

    /// Writes each delivery as a line. The number of deliveries that a recorder has dropped is not
    /// written.
    ///
    /// # Errors
    /// The errors of `writer`.
    pub fn write_to(&self, mut writer: impl Write) -> io::Result<()> {
        for delivery in self {
            writeln!(writer, "{}", delivery.to_line())?;
        }
        writer.flush()
    }

    /// The deliveries.
    #[must_use]
    pub fn deliveries(&self) -> &[LoggedDelivery] {
        &self.deliveries
    }

    /// The number of deliveries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.deliveries.len()
    }

    /// Returns whether the log has no deliveries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// Iterates over the deliveries.
    pub fn iter(&self) -> std::slice::Iter<'_, LoggedDelivery> {
        self.deliveries.iter()
    }

    /// The number of deliveries that are missing because the recorder had to drop them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of incomplete lines before the last line, because a recorder was killed or met an
    /// error. Up to one delivery is missing for each: after an error, the recorder wrote the whole
    /// line again after the incomplete one.
    #[must_use]
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Returns whether the last line is incomplete. The delivery in it is missing.
    #[must_use]
    pub fn ended_torn(&self) -> bool {
        self.ended_torn
    }
}

impl FromIterator<LoggedDelivery> for DeliveryLog {
    fn from_iter<I: IntoIterator<Item = LoggedDelivery>>(deliveries: I) -> Self {
        Self {
            deliveries: deliveries.into_iter().collect(),
            ..Self::default()
        }
    }
}

impl IntoIterator for DeliveryLog {
    type Item = LoggedDelivery;
    type IntoIter = std::vec::IntoIter<LoggedDelivery>;

    fn into_iter(self) -> Self::IntoIter {
        self.deliveries.into_iter()
    }
}

impl<'a> IntoIterator for &'a DeliveryLog {
    type Item = &'a LoggedDelivery;
    type IntoIter = std::slice::Iter<'a, LoggedDelivery>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Reads the file and its rotated files, the oldest first.
fn rotated_reader(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut files = Vec::new();
    for name in hookgate_record::files(path)? {
        match File::open(&name) {
            Ok(file) => files.push(file),
            // The file is missing in the middle of a rotation, or was renamed for the last entry.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && name == path && !files.is_empty() => {
            }
            Err(error) => return Err(error),
        }
    }
    let nothing: Box<dyn Read + Send> = Box::new(io::empty());
    let all = files.into_iter().fold(nothing, |all, file| {
        // A last line without its line break must not run into the next file.
        Box::new(all.chain(WithFinalLineBreak { file, last: b'\n' }))
    });
    Ok(Box::new(BufReader::new(all)))
}

/// A file with a line break at its end.
struct WithFinalLineBreak {
    file: File,
    last: u8,
}

impl Read for WithFinalLineBreak {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        if let Some(last) = buffer[..read].last() {
            self.last = *last;
        } else if self.last != b'\n'
            && let Some(first) = buffer.first_mut()
        {
            (*first, self.last) = (b'\n', b'\n');
            return Ok(1);
        }
        Ok(read)
    }
}
