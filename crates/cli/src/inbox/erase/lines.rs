//! The lines of a file, and whether they are those of a delivery log.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;

use hookgate_record::{LoggedDelivery, TORN_LINE};
use hookgate_testing::log::LoggedDeliveryExt as _;

pub(super) fn each_line(file: &mut File, mut each: impl FnMut(u64, &[u8])) -> io::Result<()> {
    let (mut reader, mut line, mut number) = (BufReader::new(file), Vec::new(), 0);
    while reader.read_until(b'\n', &mut line)? > 0 {
        number += 1;
        each(number, &line);
        line.clear();
    }
    Ok(())
}

/// Whether the file is empty, or a recorder has written one of its lines.
pub(super) fn are_of_a_log(file: &Path) -> io::Result<bool> {
    let (mut is_empty, mut is_log) = (true, false);
    each_line(&mut File::open(file)?, |_, line| {
        is_empty = false;
        is_log = is_log || is_of_a_log(line);
    })?;
    Ok(is_empty || is_log)
}

/// Whether a recorder has written the line. A line that was cut off counts too.
fn is_of_a_log(line: &[u8]) -> bool {
    let begins = |with: &str| line.starts_with(with.as_bytes());
    begins("{\"received_at\":")
        || begins(TORN_LINE)
        || begins("{\"dropped\":")
        || LoggedDelivery::from_line(line).is_ok()
}
