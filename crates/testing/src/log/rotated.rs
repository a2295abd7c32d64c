//! A reader over a log and its rotated files.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

/// Reads the file and its rotated files, the oldest first.
pub(super) fn reader(path: &Path) -> io::Result<Box<dyn BufRead + Send>> {
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
