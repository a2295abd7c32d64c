//! The report as text, for the reader of a failed test.

use std::fmt;

use super::report::{
    AttemptReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport, Verdict,
};

/// One line for each failure, with its attempts and runs below it.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = self.attempts().count();
        let (once, never) = (self.once().count(), self.never().count());
        let twice = self.twice().count();
        writeln!(
            f,
            "{}, {}: {once} committed once, {never} never, {twice} twice",
            counted(attempts, "delivery", "deliveries"),
            counted(self.events.len(), "event", "events"),
        )?;
        let forged = self.others.iter().filter(|other| !other.authentic).count();
        if forged > 0 {
            let let_in = self.let_in().count();
            writeln!(f, "{forged} never were authentic: {let_in} of them let in")?;
        }
        if self.processes > 1 {
            writeln!(f, "{} processes, one after the other", self.processes)?;
        }
        if !self.runs_were_seen {
            writeln!(
                f,
                "commits were seen, runs were not: receiver.layer() and .handle(…) show both"
            )?;
        }
        if self.skipped > 0 {
            writeln!(f, "{} skipped, whose body was not recorded", self.skipped)?;
        }
        for event in &self.events {
            if event.verdict() != Verdict::Once {
                write!(f, "\n{event}")?;
            }
        }
        for other in self.let_in() {
            write!(f, "\n{other}")?;
        }
        for attempt in self.let_in_outside_window() {
            writeln!(
                f,
                "\nbegan a run though its timestamp lay outside the window:"
            )?;
            writeln!(f, "  {attempt}")?;
        }
        for attempt in self.let_in_tampered() {
            writeln!(f, "\nlet in though it was tampered with:\n  {attempt}")?;
        }
        let mut otherwise = self.answered_otherwise().peekable();
        if otherwise.peek().is_some() {
            writeln!(f, "\nanswered otherwise than the log says:")?;
        }
        for attempt in otherwise {
            let logged = attempt.logged_status.unwrap_or_default();
            let outcome = attempt.logged_outcome.as_deref().unwrap_or_default();
            writeln!(f, "  {attempt}; logged: {logged} {outcome}")?;
        }
        write!(f, "\nrepeat it with {}", self.faults)
    }
}

/// The result, then the attempts and runs, one line each.
impl fmt::Display for EventReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict() {
            Verdict::Once => "once",
            Verdict::Never => "NEVER",
            Verdict::Twice => "TWICE",
        };
        // Ids and types come from signed bodies, but a terminal obeys control characters from any
        // source.
        writeln!(
            f,
            "{word}: {} {} (scope {}, {})",
            self.id.escape_debug(),
            self.event_type.escape_debug(),
            self.scope.escape_debug(),
            named(&self.lines),
        )?;
        write!(
            f,
            "  {}, {} of them handled it, {}",
            counted(self.runs.len(), "run", "runs"),
            self.handled(),
            counted(self.commits.len(), "commit", "commits"),
        )?;
        for (count, what) in [
            (self.commits_lost, "found the claim lost"),
            (self.commits_unanswered, "not answered"),
        ] {
            if count > 0 {
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                write!(f, ", {} {what}", counted(count, "commit", "commits"))?;
            }
        }
        writeln!(f)?;
        for attempt in &self.attempts {
            writeln!(f, "  {attempt}")?;
            let of_attempt = |run: &&RunReport| run.attempt == Some(attempt.number);
            for run in self.runs.iter().filter(of_attempt) {
                writeln!(f, "    {run}")?;
            }
        }
        for run in self.runs.iter().filter(|run| run.attempt.is_none()) {
            writeln!(f, "  of an unknown attempt: {run}")?;
        }
        for commit in &self.commits {
            let at = after(commit.after_ms);
            writeln!(f, "  {at} committed in process {}", commit.process)?;
        }
        if let Some(hint) = self.hint() {
            writeln!(f, "  {hint}")?;
        }
        Ok(())
    }
}

impl EventReport {
    /// Returns a hint for the operator, where there is one.
    fn hint(&self) -> Option<&'static str> {
        let last = self.attempts.last()?;
        if self.verdict() == Verdict::Never && self.failed_in_log() {
            Some("it failed in the log too: each_event_committed_as_logged() allows that")
        } else if self.done_before {
            Some("the store held it as done before the replay: begin with an empty one")
        } else if self.verdict() == Verdict::Never && last.outcome == "still_running" {
            Some("still running to the end: does the store go by harness.clock()?")
        } else if self.verdict() == Verdict::Never && !self.discarded() && !self.runs.is_empty() {
            Some("answered 2xx, so the sender does not come again")
        } else if self.verdict() == Verdict::Never && last.outside_window {
            Some("stale to the end: retries that carry their first timestamp reach no receiver")
        } else {
            None
        }
    }
}

impl fmt::Display for OtherReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match (self.authentic, self.runs) {
            (true, _) => "no event",
            (false, 0) => "answered 2xx though never authentic",
            (false, _) => "LET IN though never authentic",
        };
        writeln!(f, "{what}: line {}", self.line)?;
        for attempt in &self.attempts {
            writeln!(f, "  {attempt}")?;
        }
        Ok(())
    }
}

/// The time, the origin and the answer.
impl fmt::Display for AttemptReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", after(self.after_ms), self.line)?;
        match self.origin {
            Origin::Logged => {}
            Origin::Copy(number) => write!(f, ", copy {number}")?,
            Origin::Retry(number) => write!(f, ", attempt {number}")?,
        }
        if self.process > 0 {
            write!(f, ", process {}", self.process)?;
        }
        match self.status {
            Some(status) => write!(f, ": {status} {}", self.outcome)?,
            None => write!(f, ": no answer, {}", self.outcome.escape_debug())?,
        }
        for fault in &self.faults {
            write!(f, " [{fault}]")?;
        }
        if let Some(reason) = &self.reason {
            write!(f, " ({})", reason.escape_debug())?;
        }
        if self.outside_window {
            f.write_str(" [outside the window]")?;
        }
        Ok(())
    }
}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("run: ")?;
        match self.end {
            RunEnd::Succeeded => f.write_str("succeeded"),
            RunEnd::DeadLettered => f.write_str("asked for a dead letter"),
            RunEnd::Failed(status) => write!(f, "failed with {status}"),
            RunEnd::Panicked => f.write_str("panicked"),
            RunEnd::MadeToFail => f.write_str("made to fail by the plan"),
            RunEnd::MadeToPanic => f.write_str("made to panic by the plan"),
            RunEnd::CutOff => f.write_str("cut off"),
            RunEnd::Unended => f.write_str("has not ended"),
        }
    }
}

/// Time since the beginning, as `+26:36:05.250`.
fn after(millis: u64) -> String {
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("+{hours}:{minutes:02}:{seconds:02}.{millis:03}")
}

/// `line 3` or `lines 3, 7`.
fn named(lines: &[usize]) -> String {
    let numbers: Vec<_> = lines.iter().map(usize::to_string).collect();
    let word = if lines.len() == 1 { "line" } else { "lines" };
    format!("{word} {}", numbers.join(", "))
}

pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
