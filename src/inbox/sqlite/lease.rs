//! Selects the entries that are leased next, and leases them.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{OptionalExtension, Result, params};

use super::row::{self, ENTRY, LISTED, narrow};
use crate::dedupe::ClaimToken;
use crate::inbox::engine::{Batch, CLOCK_LEAP, Job, LeaseRequest, Listed, NEVER_SETTLED, TOO_OLD};
use crate::inbox::entry::{EntryId, UNREADABLE};
use crate::sqlite::statements::statements;
use crate::sqlite::units::{duration, millis};

/// How many entries that cannot run now one call examines, and how many it makes dead letters, so that no call delays others.
const LOOKED_AT: usize = 1_000;
/// How many rows one call examines, each with one look into an index: 10 to 30 ms. Rows that have no entry due, but some in
/// back-off, are among them, and there can be a hundred thousand.
const ROWS_LOOKED_AT: usize = 10_000;
/// The wait before the next lease call if some entries were not examined, and if some rows were not.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const NEXT_ROWS: Duration = Duration::from_millis(100);

type Row = [u8; 16];

/// The time when an entry was first leased; `?3` is the time of this lease. A process of an older version counts runs and does
/// not write this time: for those entries the acceptance is the earliest possible time.
const FIRST: &str = "coalesce(first_leased_at, iif(tries > 0, accepted_at, ?3))";

statements! {
    Leasing {
        running: "SELECT row FROM entries WHERE state = 1 AND row IS NOT NULL AND until > ?1",
        row_of: "SELECT row FROM entries WHERE id = ?1",
        ended: "SELECT id, row, until, tries FROM entries WHERE state = 1 AND until <= ?1 ORDER BY until, id",
        queued: "SELECT id, row, until FROM entries WHERE state = 0 AND until <= ?1 ORDER BY until, id",
        next_row: "SELECT id, row, until FROM entries INDEXED BY entries_queued_by_row
           WHERE state = 0 AND row > ?1 ORDER BY row, until LIMIT 1",
        without_row: "SELECT id, row, until FROM entries INDEXED BY entries_queued_by_row
           WHERE state = 0 AND row IS NULL AND until <= ?1 ORDER BY until LIMIT ?2",
        next_queued: "SELECT until FROM entries WHERE state = 0 AND until > ?1 ORDER BY until LIMIT 1",
        // Entries whose leases have ended by now were examined. For one that was left out, the workers get a notification when it
        // is free.
        next_ended: "SELECT id, until FROM entries WHERE state = 1 AND until > ?1 ORDER BY until",
        lease: &format!(
            "UPDATE entries SET state = 1, token = ?2, tries = tries + 1, until = ?3 + ?4, since = ?3, first_leased_at = {FIRST}
             WHERE id = ?1 AND {FIRST} BETWEEN ?5 AND ?6"
        ),
        entry: &format!("SELECT {ENTRY}, tries, accepted_at FROM entries LEFT JOIN bodies USING (id) WHERE id = ?1"),
        dead_letter: "UPDATE entries SET state = 3, until = NULL, since = ?2, token = NULL, last_error = ?3 WHERE id = ?1",
        listed: &format!("SELECT {LISTED} FROM entries WHERE id = ?1"),
    }
    /// The row after which the next search by rows begins, so that each row has its turn.
    after_row: Row = [0; 16]
}

struct Candidate {
    due: i64,
    id: i64,
    row: Option<Row>,
}

impl Candidate {
    /// Reads the columns `id`, `row` and `until`, of which the caller has read the second.
    fn read(columns: &rusqlite::Row<'_>, row: Option<Row>) -> Result<Self> {
        Ok(Self {
            due: columns.get(2)?,
            id: columns.get(0)?,
            row,
        })
    }
}

/// The entries that were found, and whether there may be more.
#[derive(Default)]
struct Candidates {
    candidates: Vec<Candidate>,
    /// The wait before the next call, if some entries were not examined.
    cut_short: Option<Duration>,
}

impl Leasing<'_> {
    pub(super) fn lease(&mut self, request: &LeaseRequest, now: i64) -> Result<Batch> {
        let here: HashSet<i64> = request.except.iter().map(|id| id.0).collect();
        let mut busy = HashSet::new();
        if request.serial_by_row {
            busy = self.busy_rows(&here, now)?;
        }
        let (ended, mut dead_lettered) = self.ended(request, &here, &busy, now)?;
        let queued = self.queued(request, &here, &mut busy, now)?;

        let more_later = ended.cut_short.into_iter().chain(queued.cut_short).min();
        let mut candidates = ended.candidates;
        candidates.extend(queued.candidates);
        candidates.sort_by_key(|candidate| (candidate.due, candidate.id));
        if request.serial_by_row {
            let mut taken = HashSet::new();
            candidates.retain(|candidate| candidate.row.is_none_or(|row| taken.insert(row)));
        }
        let mut more_now = candidates.len() > request.most;
        candidates.truncate(request.most);

        let mut jobs = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            match self.take(candidate.id, request, now) {
                Ok(Some(job)) => jobs.push(job),
                Ok(None) => {
                    self.dead_letter(candidate.id, now, TOO_OLD, &mut dead_lettered)?;
                    more_now = true;
                }
                // An unreadable entry must not fail the whole call, which it would do each time.
                Err(error) if row::is_unreadable(&error) => {
                    self.dead_letter(candidate.id, now, UNREADABLE, &mut dead_lettered)?;
                }
                Err(error) => return Err(error),
            }
        }
        let next_in = if more_now {
            Some(Duration::ZERO)
        } else if more_later.is_some() {
            more_later
        } else {
            self.next_in(&here, now)?
        };
        Ok(Batch {
            jobs,
            next_in,
            dead_lettered,
        })
    }

    /// Leases the entry. Returns `None` if the entry's first lease began too long ago, or lies too far in the future: nothing is
    /// changed then.
    fn take(&mut self, id: i64, request: &LeaseRequest, now: i64) -> Result<Option<Job>> {
        let token = ClaimToken::new(b"");
        let (from, to) = request.run_within.map_or((i64::MIN, i64::MAX), |within| {
            (
                now.saturating_sub(millis(within)),
                now.saturating_add(millis(CLOCK_LEAP)),
            )
        });
        let lease = millis(request.lease);
        let leased = self
            .lease
            .execute(params![id, token.as_bytes(), now, lease, from, to])?;
        if leased == 0 {
            return Ok(None);
        }
        self.entry.query_row([id], |row| {
            let (tries, accepted_at): (i64, i64) = (row.get("tries")?, row.get("accepted_at")?);
            Ok(Some(Job {
                id: EntryId(id),
                token,
                tries: narrow(tries),
                waited: duration(now.saturating_sub(accepted_at)),
                entry: row::entry(row)?,
            }))
        })
    }

    /// Returns the rows of entries under another lease, or of jobs of this process, whatever state the file has for these.
    fn busy_rows(&mut self, here: &HashSet<i64>, now: i64) -> Result<HashSet<Row>> {
        let mut busy = HashSet::new();
        let mut rows = self.running.query([now])?;
        while let Some(row) = rows.next()? {
            busy.extend(row::of_row(row, 0)?);
        }
        drop(rows);
        for id in here {
            let of_row = self.row_of.query_row([id], |row| row::of_row(row, 0));
            busy.extend(of_row.optional()?.flatten());
        }
        Ok(busy)
    }

    /// Returns the entries whose leases have ended without a settlement, to be run again, and those that became dead letters.
    fn ended(
        &mut self,
        request: &LeaseRequest,
        here: &HashSet<i64>,
        busy: &HashSet<Row>,
        now: i64,
    ) -> Result<(Candidates, Vec<Listed>)> {
        let mut found = Candidates::default();
        let mut dead = Vec::new();
        let mut rows = self.ended.query([now])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if here.contains(&id) {
                continue;
            }
            let tries: i64 = row.get(3)?;
            if narrow(tries) >= request.max_tries {
                dead.push(id);
                if dead.len() == LOOKED_AT {
                    found.cut_short = Some(LOOK_AGAIN);
                    break;
                }
                continue;
            }
            let of_row = row::of_row(row, 1)?.filter(|_| request.serial_by_row);
            let may_run = |row| {
                !busy.contains(&row) && found.candidates.iter().all(|found| found.row != Some(row))
            };
            if found.candidates.len() <= request.most && of_row.is_none_or(may_run) {
                found.candidates.push(Candidate::read(row, of_row)?);
            }
        }
        drop(rows);
        let mut dead_lettered = Vec::with_capacity(dead.len());
        for id in dead {
            self.dead_letter(id, now, NEVER_SETTLED, &mut dead_lettered)?;
        }
        Ok((found, dead_lettered))
    }

    /// Makes a dead letter of the entry. It is reported unless a column has a value of another type.
    fn dead_letter(
        &mut self,
        id: i64,
        now: i64,
        why: &str,
        dead_lettered: &mut Vec<Listed>,
    ) -> Result<()> {
        self.dead_letter.execute(params![id, now, why])?;
        match self.listed.query_row([id], row::listed) {
            Ok(listed) => dead_lettered.push(listed),
            Err(error) if row::is_unreadable(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Returns entries that are due, at most one more than asked for. With `serial_by_row`, the rows of these entries are added
    /// to `busy`.
    fn queued(
        &mut self,
        request: &LeaseRequest,
        here: &HashSet<i64>,
        busy: &mut HashSet<Row>,
        now: i64,
    ) -> Result<Candidates> {
        let mut found = Candidates::default();
        let mut passed_over = 0;
        let mut rows = self.queued.query([now])?;
        while let Some(row) = rows.next()? {
            if found.candidates.len() > request.most {
                return Ok(found);
            }
            let id = row.get(0)?;
            if here.contains(&id) {
                continue;
            }
            let of_row = row::of_row(row, 1)?.filter(|_| request.serial_by_row);
            if of_row.is_some_and(|row| !busy.insert(row)) {
                passed_over += 1;
                if passed_over == LOOKED_AT {
                    found.cut_short = Some(LOOK_AGAIN);
                    break;
                }
                continue;
            }
            found.candidates.push(Candidate::read(row, of_row)?);
        }
        drop(rows);
        if found.cut_short.is_some() {
            self.by_rows(request, here, busy, now, &mut found)?;
        }
        Ok(found)
    }

    /// If a few rows have very many entries, the first entries in time all belong to them. Then one entry per row is examined,
    /// from the row where the last search ended.
    fn by_rows(
        &mut self,
        request: &LeaseRequest,
        here: &HashSet<i64>,
        busy: &mut HashSet<Row>,
        now: i64,
        found: &mut Candidates,
    ) -> Result<()> {
        let mut known = here.clone();
        known.extend(found.candidates.iter().map(|found| found.id));
        let most = i64::try_from(request.most.saturating_add(known.len()).saturating_add(1));
        let mut rows = self
            .without_row
            .query(params![now, most.unwrap_or(i64::MAX)])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if !known.contains(&id) {
                found.candidates.push(Candidate::read(row, None)?);
            }
        }
        drop(rows);
        for _ in 0..ROWS_LOOKED_AT {
            if found.candidates.len() > request.most {
                return Ok(());
            }
            let next = self.next_row.query_row([self.after_row], |row| {
                // A row key of the wrong length ends the search, which then begins again.
                let of_row = row::of_row(row, 1)?.unwrap_or([u8::MAX; 16]);
                Ok((of_row, Candidate::read(row, Some(of_row))?))
            });
            let Some((of_row, candidate)) = next.optional()? else {
                // The next call begins at the first row again.
                self.after_row = [0; 16];
                return Ok(());
            };
            self.after_row = of_row;
            if candidate.due <= now && busy.insert(of_row) {
                found.candidates.push(candidate);
            }
        }
        found.cut_short = Some(NEXT_ROWS);
        Ok(())
    }

    /// Returns the time until the next entry is due, or the next lease of another process ends.
    fn next_in(&mut self, here: &HashSet<i64>, now: i64) -> Result<Option<Duration>> {
        let queued = self.next_queued.query_row([now], |row| row.get(0));
        let mut next: Option<i64> = queued.optional()?;
        let mut rows = self.next_ended.query([now])?;
        while let Some(row) = rows.next()? {
            let (id, until): (i64, i64) = (row.get(0)?, row.get(1)?);
            if !here.contains(&id) {
                next = Some(next.map_or(until, |next| next.min(until)));
                break;
            }
        }
        Ok(next.map(|next| duration(next.saturating_sub(now))))
    }
}
