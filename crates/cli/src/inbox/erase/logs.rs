//! Searches delivery logs, and writes them again without the lines of a person or a row.

use std::collections::HashSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::mem;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use hookgate_record::{LoggedDelivery, TORN_LINE, files};
use hookgate_testing::log::LoggedDeliveryExt as _;
use serde_json::json;

use super::lines::{self, each_line};
use super::subject::Subject;
use crate::fault::{Class, Fault};
use crate::out::Out;
use crate::printable::printable;

/// For so long, lines are looked for that a receiver was writing to the old file when it was replaced.
const LATE_LINES: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);

/// A delivery log with its rotated files.
pub(super) struct Log {
    path: PathBuf,
}

impl Log {
    /// Checks that the log is a file, before anything is erased.
    pub(super) fn open(path: &Path) -> Result<Self, Fault> {
        // A link to the log stays one.
        let found = fs::canonicalize(path).and_then(|path| Ok((fs::metadata(&path)?, path)));
        match found {
            Ok((metadata, path)) if metadata.is_file() => Self { path }.or_refused(),
            Ok(_) => Err(
                Fault::new(Class::Input, format!("{} is not a file", path.display()))
                    .advise("name the file that the receiver's recorder writes"),
            ),
            Err(error) => Err(fault(path, "can't be read", &error)),
        }
    }

    /// Refuses a file of another kind: a search of it would find nothing, and look like one of a log without the person.
    fn or_refused(self) -> Result<Self, Fault> {
        for file in self.files()? {
            let is_log = match lines::are_of_a_log(&file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read.map_err(|error| fault(&file, "can't be read", &error))?,
            };
            if !is_log {
                let message = format!("{} has no line of a delivery log", file.display());
                return Err(Fault::new(Class::Input, message).advise(
                    "name the file that the receiver's recorder writes, and unpack what is compressed. Nothing is erased yet",
                ));
            }
        }
        Ok(self)
    }

    /// Prints each line that is found, and returns their number.
    pub(super) fn search(&self, subject: &Subject<'_>, out: &mut Out) -> Result<u64, Fault> {
        let mut found = 0;
        for file in self.files()? {
            let name = file.display().to_string();
            let mut unwritten = Ok(());
            let searched = File::open(&file).and_then(|mut open| each_line(&mut open, |number, line| {
                let Some((event_type, event_id)) = found_in(line, subject) else {
                    return;
                };
                found += 1;
                let value = json!({ "log": name, "line": number, "eventId": event_id, "eventType": event_type });
                let word = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                let (event_type, event_id) = (word(&event_type), word(&event_id));
                let text = format!("{name}:{number}  {event_type}  {event_id}");
                if unwritten.is_ok() {
                    unwritten = out.say(&printable(&text), &value);
                }
            }));
            unwritten?;
            match searched {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                searched => searched.map_err(|error| fault(&file, "can't be read", &error))?,
            }
        }
        out.flush()?;
        Ok(found)
    }

    /// Writes each file again that has such a line, the oldest first, and counts the lines that are gone, also where it fails after some.
    ///
    /// A receiver may rotate the files meanwhile: each file that is there now is looked for until it is done, or deleted. What the
    /// receiver writes after the beginning is not looked at, except in the file that it writes now.
    pub(super) fn erase(&self, subject: &Subject<'_>, erased: &mut u64) -> Result<(), Fault> {
        let mut due = HashSet::new();
        for file in self.files()? {
            due.extend(self.identity_of(&file)?);
        }
        // In one round, a file may get the name of another that was looked at before.
        let mut rounds_without_any = 0;
        while rounds_without_any < 2 && !due.is_empty() {
            rounds_without_any += 1;
            for file in self.files()? {
                let found = self.identity_of(&file)?;
                if !found.is_some_and(|found| due.contains(&found)) {
                    continue;
                }
                rounds_without_any = 0;
                match rewrite(&file, subject, file == self.path, erased) {
                    Ok(Some(was)) => {
                        due.remove(&was);
                    }
                    Ok(None) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        let message = format!("{} exists", beside(&file).display());
                        return Err(Fault::new(Class::Input, message).advise(
                            "another erase is writing it, or was killed: if none is running, delete it and run the command again",
                        ));
                    }
                    Err(error) => return Err(fault(&file, "can't be written anew", &error)),
                }
            }
        }
        Ok(())
    }

    /// `None` between two steps of a rotation.
    fn identity_of(&self, file: &Path) -> Result<Option<Identity>, Fault> {
        match fs::metadata(file) {
            Ok(metadata) => Ok(Some(identity(file, &metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fault(file, "can't be read", &error)),
        }
    }

    fn files(&self) -> Result<Vec<PathBuf>, Fault> {
        files(&self.path)
            .map_err(|error| fault(&self.path, "has a folder that can't be read", &error))
    }
}

fn fault(path: &Path, what: &str, error: &io::Error) -> Fault {
    let message = format!("the log {} {what}", path.display());
    Fault::caused_by(Class::Input, &message, error).advise(
        "run this as the receiver's user, with space for a second copy of the log. Files that are not done yet are as they were",
    )
}

/// The type and the id of the event, if the line has data of the subject.
fn found_in(line: &[u8], subject: &Subject<'_>) -> Option<(Option<String>, Option<String>)> {
    match LoggedDelivery::from_line(line) {
        Ok(logged) => subject
            .is_in_logged(&logged)
            .then(|| (logged.event_type(), logged.event_id())),
        // Incomplete, or of another program.
        Err(_) => subject.is_in_raw(line).then_some((None, None)),
    }
}

/// The name of the new file until it replaces the old one. No rotated file has such a name.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".erase");
    name.into()
}

/// Writes the lines to keep to a new file, which is flushed and then renamed: at each moment the log is the old one or the new one,
/// as a whole. `is_live`: a receiver may be writing to it. Returns the file that was read, which has no such line any more or is
/// replaced. `None`: the file has another name by now, and is as it was.
fn rewrite(
    path: &Path,
    subject: &Subject<'_>,
    is_live: bool,
    erased: &mut u64,
) -> io::Result<Option<Identity>> {
    let mut old = File::open(path)?;
    let metadata = old.metadata()?;
    let was = identity(path, &metadata);
    let mut has_any = false;
    each_line(&mut old, |_, line| {
        has_any = has_any || found_in(line, subject).is_some();
    })?;
    if !has_any {
        return Ok(Some(was));
    }
    old.seek(SeekFrom::Start(0))?;
    let new = beside(path);
    let made = fresh(&new, &metadata)?;
    let mut copy = Copy {
        old: BufReader::new(old),
        line: Vec::new(),
        subject,
        erased: 0,
    };
    let renamed = copy.put_in_place(made, &new, path, &was);
    if !matches!(renamed, Ok(true)) {
        // If it can't be removed, the next call says so.
        let _ = fs::remove_file(&new);
    }
    if !renamed? {
        return Ok(None);
    }
    *erased += mem::take(&mut copy.erased);
    // The new name is durable before the command says that the lines are gone.
    #[cfg(unix)]
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    let late = copy.late_lines(path, is_live);
    *erased += copy.erased;
    late.map(|()| Some(was))
}

/// A new file with the owner and the mode of the old one.
fn fresh(path: &Path, like: &Metadata) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    let made = like_the_old(&file, like);
    if made.is_err() {
        let _ = fs::remove_file(path);
    }
    made.map(|()| file)
}

#[cfg(unix)]
fn like_the_old(file: &File, like: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(file, Some(like.uid()), Some(like.gid()))?;
    }
    file.set_permissions(like.permissions())
}

#[cfg(not(unix))]
fn like_the_old(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Tells a file from another one of the same name.
#[cfg(unix)]
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(_: &Path, metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt as _;

    (metadata.dev(), metadata.ino())
}

/// There, a recorder that has its file open keeps it from being replaced.
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(not(unix))]
fn identity(path: &Path, _: &Metadata) -> Identity {
    path.to_owned()
}

/// The lines of the old file on their way to the new one.
struct Copy<'s> {
    old: BufReader<File>,
    /// The part of a line that has no end yet.
    line: Vec<u8>,
    subject: &'s Subject<'s>,
    erased: u64,
}

impl Copy<'_> {
    /// Writes the new file, and gives it the name of the old one, unless that has another name by now.
    fn put_in_place(
        &mut self,
        made: File,
        new: &Path,
        path: &Path,
        old: &Identity,
    ) -> io::Result<bool> {
        let mut to = BufWriter::new(made);
        self.whole_lines(&mut to)?;
        let made = to.into_inner().map_err(io::IntoInnerError::into_error)?;
        made.sync_all()?;
        if identity(path, &fs::metadata(path)?) != *old {
            return Ok(false);
        }
        // A program that has the file open keeps this one from being renamed on systems other than Unix.
        drop(made);
        fs::rename(new, path)?;
        Ok(true)
    }

    /// Copies all lines that are complete, except those of the subject.
    fn whole_lines(&mut self, to: &mut impl io::Write) -> io::Result<()> {
        while self.old.read_until(b'\n', &mut self.line)? > 0 && self.line.ends_with(b"\n") {
            self.keep(to)?;
        }
        Ok(())
    }

    fn keep(&mut self, to: &mut impl io::Write) -> io::Result<()> {
        if found_in(&self.line, self.subject).is_some() {
            self.erased += 1;
        } else {
            to.write_all(&self.line)?;
        }
        self.line.clear();
        Ok(())
    }

    /// Copies what a receiver has written to the old file since it was read: a recorder notices before its next lines that its file
    /// was replaced, but may be writing just now. Each line is one write at the end of the new file, as the recorder's are.
    fn late_lines(&mut self, path: &Path, is_live: bool) -> io::Result<()> {
        let mut to = OpenOptions::new().read(true).append(true).open(path)?;
        let until = Instant::now() + LATE_LINES;
        loop {
            self.whole_lines(&mut to)?;
            if !is_live || Instant::now() >= until {
                break;
            }
            thread::sleep(LOOK);
        }
        if found_in(&self.line, self.subject).is_some() {
            self.erased += 1;
        } else if !self.line.is_empty() {
            // Its writer was killed.
            let begin = if ends_a_line(&mut to)? { "" } else { "\n" };
            let end = format!("\n{TORN_LINE}\n");
            to.write_all(&[begin.as_bytes(), &self.line, end.as_bytes()].concat())?;
        }
        to.sync_all()
    }
}

/// Whether the next byte would begin a line.
fn ends_a_line(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
