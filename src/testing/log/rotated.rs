//! The names of rotated files, and a reader over all of them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A higher number is not from this crate: it may be a date, for example.
pub(super) const MOST: u64 = 999;

/// Returns the path of a rotated file. `path.1` is the newest.
pub(super) fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

/// Returns the numbers of the rotated files, unsorted.
pub(super) fn numbers(path: &Path) -> io::Result<Vec<u64>> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Some(name) = path.file_name().map(|name| name.as_encoded_bytes()) else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let number = entry.as_encoded_bytes().strip_prefix(name);
        let number = number.and_then(|rest| rest.strip_prefix(b"."));
        let digits = number.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = digits.and_then(|digits| digits.parse::<u64>().ok());
        // `path.01` and `path.+1` are not from this crate.
        let ours = |number: &u64| {
            (1..=MOST).contains(number) && digits == Some(number.to_string().as_str())
        };
        numbers.extend(number.filter(ours));
    }
    Ok(numbers)
}

/// Reads the file and its rotated files, the oldest first.
pub(super) fn reader(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
    let mut aside = numbers(path)?;
    aside.sort_unstable();
    let mut files = Vec::new();
    for number in aside.into_iter().rev() {
        files.push(File::open(numbered(path, number))?);
    }
    match File::open(path) {
        Ok(file) => files.push(file),
        // The file is missing in the middle of a rotation, or was renamed for the last entry.
        Err(error) if error.kind() == io::ErrorKind::NotFound && !files.is_empty() => {}
        Err(error) => return Err(error),
    }
    let nothing: Box<dyn Read + Send> = Box::new(io::empty());
    let all = files.into_iter().fold(nothing, |all, file| {
        // A last line without its line break must not run into the next file.
        Box::new(all.chain(EndsItsLine { file, last: b'\n' }))
    });
    Ok(Box::new(BufReader::new(all)))
}

/// A file with a line break at its end.
struct EndsItsLine {
    file: File,
    last: u8,
}

impl Read for EndsItsLine {
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
