//! A whole log, read.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::entry::LoggedDelivery;
use crate::error::LogError;

/// The deliveries of a log, in the order in which they were logged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeliveryLog {
    deliveries: Vec<LoggedDelivery>,
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

    /// Reads lines from anywhere.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn read(lines: impl BufRead) -> Result<Self, LogError> {
        let mut deliveries = Vec::new();
        for (number, line) in (1..).zip(lines.lines()) {
            let line = line.map_err(LogError::unreadable)?;
            deliveries
                .push(LoggedDelivery::from_line(line).map_err(|error| error.at_line(number))?);
        }
        Ok(Self { deliveries })
    }

    /// The deliveries.
    #[must_use]
    pub fn deliveries(&self) -> &[LoggedDelivery] {
        &self.deliveries
    }
}

impl FromIterator<LoggedDelivery> for DeliveryLog {
    fn from_iter<I: IntoIterator<Item = LoggedDelivery>>(deliveries: I) -> Self {
        Self {
            deliveries: deliveries.into_iter().collect(),
        }
    }
}
