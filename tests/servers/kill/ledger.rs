//! The steps of each run and their processes, in a file that all processes add lines to and that no
//! kill takes back.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The step that a line records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A handler was called.
    Begun,
    /// It had its effect, and is about to say so.
    Ended,
    /// The store got its success, and it held the claim or lease until then.
    Committed,
    /// It failed, and the event may run again.
    Failed,
    /// Another run held its claim or lease at its end, or the store could not be reached.
    Lost,
    /// The handler found by itself that another run had had the effect.
    Found,
    /// The process was killed, and is gone.
    Killed,
}

const STEPS: [(Step, &str); 7] = [
    (Step::Begun, "begun"),
    (Step::Ended, "ended"),
    (Step::Committed, "committed"),
    (Step::Failed, "failed"),
    (Step::Lost, "lost"),
    (Step::Found, "found"),
    (Step::Killed, "killed"),
];

/// Bytes of a line, with its end.
const LINE: usize = 64;

#[derive(Clone)]
pub struct Ledger(PathBuf);

impl Ledger {
    pub fn within(folder: &Path) -> Self {
        Self(folder.join("ledger"))
    }

    /// Of this process.
    pub fn add(&self, step: Step, event: &str) {
        self.add_of(step, event, std::process::id());
    }

    pub fn add_of(&self, step: Step, event: &str, process: u32) {
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).open(&self.0).unwrap();
        let (_, name) = STEPS[step as usize];
        // In one write, so that lines of several processes don't mix. All of one length, of which a
        // page holds a whole number: a write that crosses pages is cut in two where its process is
        // killed in between.
        let line = format!("{name} {event} {process}");
        assert!(line.len() < LINE, "{line}");
        let line = format!("{line:<width$}\n", width = LINE - 1);
        file.write_all(line.as_bytes()).unwrap();
    }

    pub fn lines(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(Line::read).collect()
    }
}

pub struct Line {
    pub step: Step,
    pub event: String,
    pub process: u32,
}

impl Line {
    fn read(line: &str) -> Self {
        let [name, event, process] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line:?}")
        };
        let step = STEPS.iter().find(|(_, known)| *known == name).unwrap().0;
        Self {
            step,
            event: event.to_owned(),
            process: process.parse().unwrap(),
        }
    }
}

/// Follows a ledger: which events have had their effect by now.
pub struct Follower {
    path: PathBuf,
    file: Option<File>,
    rest: String,
    ended: HashSet<String>,
}

impl Follower {
    pub fn of(ledger: &Ledger) -> Self {
        Self {
            path: ledger.0.clone(),
            file: None,
            rest: String::new(),
            ended: HashSet::new(),
        }
    }

    pub fn has_ended(&mut self, event: &str) -> bool {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            file.read_to_string(&mut self.rest).unwrap();
        }
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        for line in self.rest.drain(..whole).as_str().lines() {
            let line = Line::read(line);
            if line.step == Step::Ended {
                self.ended.insert(line.event);
            }
        }
        self.ended.contains(event)
    }
}

/// The runs of each event, counted.
#[derive(Default)]
pub struct Account {
    pub runs: usize,
    /// Runs that were not the first of their event.
    pub repeats: usize,
    /// Of all runs.
    pub failed: usize,
    pub lost: usize,
    /// Those that their process took along when it was killed.
    pub cut_off: usize,
    pub ended: HashSet<String>,
    /// Violations: an event that was committed twice, or a run of a living process that came to no
    /// end.
    pub wrong: Vec<String>,
}

impl Account {
    /// Of all lines, once nothing is under way.
    ///
    /// An event's runs may be many, but one of them alone is committed; every other one has failed,
    /// has lost its lease, or was killed with its process. There is no other reason for a second
    /// run.
    pub fn of(lines: &[Line]) -> Self {
        let mut account = Self::default();
        let killed: HashSet<_> = lines
            .iter()
            .filter(|line| line.step == Step::Killed)
            .map(|line| line.process)
            .collect();
        let mut commits: BTreeMap<&str, usize> = BTreeMap::new();
        let mut begun: BTreeMap<&str, usize> = BTreeMap::new();
        let mut open: BTreeMap<(&str, u32), isize> = BTreeMap::new();
        for line in lines {
            let event = line.event.as_str();
            let under_way = open.entry((event, line.process)).or_default();
            match line.step {
                Step::Begun => {
                    account.runs += 1;
                    *begun.entry(event).or_default() += 1;
                    *under_way += 1;
                }
                Step::Ended => {
                    account.ended.insert(event.to_owned());
                }
                Step::Committed => {
                    *commits.entry(event).or_default() += 1;
                    *under_way -= 1;
                }
                Step::Failed => {
                    account.failed += 1;
                    *under_way -= 1;
                }
                Step::Lost => {
                    account.lost += 1;
                    *under_way -= 1;
                }
                Step::Found => *under_way -= 1,
                Step::Killed => {}
            }
        }
        account.repeats = account.runs - begun.len();
        for (event, times) in commits {
            if times > 1 {
                account
                    .wrong
                    .push(format!("{event} was committed {times} times"));
            }
        }
        for ((event, process), left) in open {
            match left {
                0 => {}
                1.. if killed.contains(&process) => account.cut_off += left.unsigned_abs(),
                _ => account.wrong.push(format!(
                    "{event}: {left} runs without an end in process {process}, which lives"
                )),
            }
        }
        account
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(text: &str) -> Account {
        Account::of(&text.lines().map(Line::read).collect::<Vec<_>>())
    }

    #[test]
    fn a_second_run_needs_a_reason() {
        let killed =
            account("begun a 1\nended a 1\nkilled - 1\nbegun a 2\nended a 2\ncommitted a 2");
        assert_eq!((killed.runs, killed.repeats, killed.cut_off), (2, 1, 1));
        assert!(killed.wrong.is_empty());
        let stale = account("begun a 1\nbegun a 2\ncommitted a 2\nlost a 1");
        assert_eq!((stale.repeats, stale.lost), (1, 1));
        assert!(stale.wrong.is_empty());
        let failed = account("begun a 1\nfailed a 1\nbegun a 1\ncommitted a 1");
        assert!(failed.wrong.is_empty());

        let twice = account("begun a 1\ncommitted a 1\nbegun a 2\ncommitted a 2");
        assert_eq!(twice.wrong, ["a was committed 2 times"]);
        let silent = account("begun a 1\nbegun a 2\ncommitted a 2\nkilled - 2");
        assert_eq!(silent.wrong.len(), 1, "{:?}", silent.wrong);
    }
}
