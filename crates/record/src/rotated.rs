//! The names of rotated files.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// A higher number is not from this crate: it may be a date, for example.
pub(crate) const MAX_FILES: u64 = 999;

/// Returns the path of a rotated file. `path.1` is the newest.
pub(crate) fn numbered(path: &Path, number: u64) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{number}"));
    name.into()
}

/// Returns the numbers of the rotated files, unsorted.
pub(crate) fn numbers(path: &Path) -> io::Result<Vec<u64>> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let Some(name) = path.file_name() else {
        return Ok(Vec::new());
    };
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?.file_name();
        let rest = entry
            .as_encoded_bytes()
            .strip_prefix(name.as_encoded_bytes());
        let digits = rest.and_then(|rest| std::str::from_utf8(rest.strip_prefix(b".")?).ok());
        let number = digits.and_then(|digits| digits.parse().ok());
        // `path.01` and `path.+1` are not from this crate.
        let ours = |number: &u64| numbered(name.as_ref(), *number) == entry.as_os_str();
        numbers.extend(number.filter(|number| (1..=MAX_FILES).contains(number) && ours(number)));
    }
    Ok(numbers)
}

/// Returns the files of a log, the oldest first: those that a [`Recorder`](crate::Recorder) has
/// rotated, and the file itself.
///
/// The last one may be missing for a moment, while the recorder rotates.
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("hookgate-doctest-files-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let path = folder.join("deliveries.jsonl");
/// for rotated in ["deliveries.jsonl.2", "deliveries.jsonl.1", "deliveries.jsonl.bak"] {
///     std::fs::write(folder.join(rotated), "")?;
/// }
/// let files = hookgate_record::files(&path)?;
/// assert_eq!(files, [folder.join("deliveries.jsonl.2"), folder.join("deliveries.jsonl.1"), path]);
/// # std::fs::remove_dir_all(folder)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// The folder can't be read.
pub fn files(path: impl AsRef<Path>) -> io::Result<Vec<PathBuf>> {
    let path = path.as_ref();
    let mut numbers = numbers(path)?;
    numbers.sort_unstable_by(|one, other| other.cmp(one));
    let rotated = numbers.into_iter().map(|number| numbered(path, number));
    Ok(rotated.chain([path.to_owned()]).collect())
}
