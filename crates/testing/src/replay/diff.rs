//! Compares two reports: before and after a change.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::report::{EventReport, Report, Verdict};

/// The differences between a report and an earlier one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReportDiff {
    /// Events with different results, or that only one of the reports has.
    pub events: Vec<EventDiff>,
    /// Lines whose delivery was never authentic, but was let in before.
    pub let_in_before: Vec<usize>,
    /// The same, let in after.
    pub let_in_after: Vec<usize>,
    /// Whether the faults differ, so that the reports are not comparable.
    pub other_faults: bool,
}

/// An event with different results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventDiff {
    /// Its scope.
    pub scope: String,
    /// Its id.
    pub id: String,
    /// The result before; `None` where that report does not have the event.
    pub before: Option<EventResult>,
    /// The result after; `None` where that report does not have the event.
    pub after: Option<EventResult>,
}

/// The result of an event, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventResult {
    /// The result in one word.
    pub verdict: Verdict,
    /// The number of runs that began.
    pub runs: usize,
    /// The number of commits.
    pub commits: usize,
    /// The answers, attempt by attempt: the status, where there was an answer, and the outcome.
    pub answers: Vec<(Option<u16>, String)>,
}

impl Report {
    /// Returns the differences of `after` from this report: the same log with the same faults, before and after a change of
    /// yours.
    ///
    /// ```
    /// # use hookgate_testing::replay::Report;
    /// # fn compare(kept: &str, report: &Report) -> Result<(), serde_json::Error> {
    /// let before: Report = serde_json::from_str(kept)?;
    /// let diff = before.diff(report);
    /// assert!(diff.is_empty(), "{diff}");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn diff(&self, after: &Self) -> ReportDiff {
        let mut pairs = BTreeMap::<_, (Option<EventResult>, Option<EventResult>)>::new();
        let name = |event: &EventReport| (event.scope.clone(), event.id.clone());
        for event in &self.events {
            pairs.entry(name(event)).or_default().0 = Some(EventResult::of(event));
        }
        for event in &after.events {
            pairs.entry(name(event)).or_default().1 = Some(EventResult::of(event));
        }
        let differing = pairs
            .into_iter()
            .filter(|(_, (before, after))| before != after);
        let lines = |report: &Self| report.let_in().map(|other| other.line).collect();
        let (let_in_before, let_in_after): (Vec<_>, Vec<_>) = (lines(self), lines(after));
        ReportDiff {
            events: differing
                .map(|((scope, id), (before, after))| EventDiff {
                    scope,
                    id,
                    before,
                    after,
                })
                .collect(),
            let_in_before,
            let_in_after,
            other_faults: self.faults != after.faults,
        }
    }
}

impl ReportDiff {
    /// Whether all results are the same, under the same faults.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.let_in_before == self.let_in_after && !self.other_faults
    }
}

impl EventResult {
    fn of(event: &EventReport) -> Self {
        let attempts = event.attempts.iter();
        Self {
            verdict: event.verdict(),
            runs: event.runs.len(),
            commits: event.commits.len(),
            answers: attempts
                .map(|attempt| (attempt.status, attempt.outcome.clone()))
                .collect(),
        }
    }
}

/// A line for each side of each event.
impl fmt::Display for ReportDiff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no difference");
        }
        if self.other_faults {
            writeln!(f, "the faults were not the same")?;
        }
        for event in &self.events {
            let (id, scope) = (event.id.escape_debug(), event.scope.escape_debug());
            writeln!(f, "{id} (scope {scope})")?;
            for (sign, side) in [('-', &event.before), ('+', &event.after)] {
                match side {
                    Some(result) => writeln!(f, "  {sign} {result}")?,
                    None => writeln!(f, "  {sign} not there")?,
                }
            }
        }
        if self.let_in_before != self.let_in_after {
            let (before, after) = (&self.let_in_before, &self.let_in_after);
            writeln!(
                f,
                "let in though never authentic: lines {before:?}, then {after:?}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for EventResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Once => "once",
            Verdict::Never => "never",
            Verdict::Twice => "twice",
        };
        write!(
            f,
            "{verdict}, {} runs, {} commits:",
            self.runs, self.commits
        )?;
        for (status, outcome) in &self.answers {
            match status {
                Some(status) => write!(f, " {status} {outcome},")?,
                None => write!(f, " no answer,")?,
            }
        }
        Ok(())
    }
}
