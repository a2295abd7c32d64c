//! Selects the entries that are leased next, and leases them.

use std::collections::HashSet;
use std::time::Duration;

use hookgate::dedupe::ClaimToken;
use hookgate_inbox::engine::{
    Batch, CLOCK_JUMPED, CLOCK_LEAP, Job, LeaseRequest, NEVER_SETTLED, TOO_OLD, UNREADABLE,
};
use hookgate_inbox::{EntryId, EntryState, Listed};
use rusqlite::{OptionalExtension, Result, params};

use super::row::{self, ENTRY, LISTED, narrow};
use crate::statements::statements;
use crate::units::{duration, millis};

/// How many entries that cannot run now one call examines, and how many it makes dead letters, so
/// that no call delays others.
const LOOKED_AT: usize = 1_000;
/// How many rows one call examines, each with one look into an index: 10 to 30 ms. Rows that have
/// no entry due, but some in back-off, are among them, and there can be a hundred thousand.
const ROWS_LOOKED_AT: usize = 10_000;
/// The wait before the next lease call if some entries were not examined, and if some rows were
/// not.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
const NEXT_ROWS: Duration = Duration::from_millis(100);

type Row = [u8; 16];

/// The time when an entry was first leased; `?3` is the time of this lease.
const FIRST: &str = "coalesce(first_leased_at, ?3)";

statements! {
    Leasing {
        running: "SELECT row FROM entries WHERE state = 1 AND row IS NOT NULL AND until > ?1",
        row_of: "SELECT row FROM entries WHERE id = ?1",
        worn_out: "SELECT id FROM entries WHERE state = 1 AND until <= ?1 AND tries >= ?2 ORDER BY until, id",
        due: "SELECT id, row, until FROM entries WHERE state = ?1 AND until <= ?2 AND (state = 0 OR tries < ?3) ORDER BY until, id",
        next_row: "SELECT id, row, until FROM entries INDEXED BY entries_queued_by_row
           WHERE state = 0 AND row > ?1 ORDER BY row, until LIMIT 1",
        without_row: "SELECT id, row, until FROM entries INDEXED BY entries_queued_by_row
           WHERE state = 0 AND row IS NULL AND until <= ?1 ORDER BY until LIMIT ?2",
        // Entries that are due by now were examined. For one that was left out, the workers get a
        // notification when it is free.
        later: "SELECT id, until FROM entries WHERE state = ?1 AND until > ?2 ORDER BY until",
        lease: &format!(
            "UPDATE entries SET state = 1, token = ?2, tries = tries + 1, until = ?3 + ?4, since = ?3, first_leased_at = {FIRST}
             WHERE id = ?1 AND {FIRST} BETWEEN ?5 AND ?6"
        ),
        entry: &format!("SELECT {ENTRY}, tries, accepted_at FROM entries LEFT JOIN bodies USING (id) WHERE id = ?1"),
        is_ahead: "SELECT first_leased_at > ?2 FROM entries WHERE id = ?1",
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

/// The search of one lease call.
struct Search<'r> {
    request: &'r LeaseRequest,
    now: i64,
    /// The entries that run in this process, whatever state the file has for them.
    here: HashSet<i64>,
    /// With `serial_by_row`, the rows of these and of entries under another lease.
    busy: HashSet<Row>,
    candidates: Vec<Candidate>,
    dead_lettered: Vec<Listed>,
    /// The wait before the next call, if some entries were not examined.
    cut_short: Option<Duration>,
}

impl Leasing<'_> {
    pub(super) fn lease(&mut self, request: &LeaseRequest, now: i64) -> Result<Batch> {
        let mut search = Search {
            request,
            now,
            here: request.except.iter().map(|id| id.get()).collect(),
            busy: HashSet::new(),
            candidates: Vec::new(),
            dead_lettered: Vec::new(),
            cut_short: None,
        };
        if request.serial_by_row {
            self.find_busy_rows(&mut search)?;
        }
        self.end_worn_out(&mut search)?;
        self.examine(EntryState::Running, &mut search)?;
        self.examine(EntryState::Queued, &mut search)?;

        let mut candidates = std::mem::take(&mut search.candidates);
        candidates.sort_by_key(|candidate| (candidate.due, candidate.id));
        let mut taken = HashSet::new();
        candidates.retain(|candidate| candidate.row.is_none_or(|row| taken.insert(row)));
        let mut more_now = candidates.len() > request.most;
        candidates.truncate(request.most);

        let mut jobs = Vec::with_capacity(candidates.len());
        for Candidate { id, .. } in candidates {
            match self.take(id, request, now) {
                Ok(Some(job)) => jobs.push(job),
                Ok(None) => {
                    let is_ahead = self.is_ahead.query_row([id, now], |row| row.get(0))?;
                    let reason = if is_ahead { CLOCK_JUMPED } else { TOO_OLD };
                    self.dead_letter(id, reason, &mut search)?;
                    more_now = true;
                }
                // An unreadable entry must not fail the whole call, which it would do each time.
                Err(error) if row::is_unreadable(&error) => {
                    self.dead_letter(id, UNREADABLE, &mut search)?;
                }
                Err(error) => return Err(error),
            }
        }
        let next_in = match search.cut_short {
            _ if more_now => Some(Duration::ZERO),
            None => self.next_in(&search)?,
            cut_short => cut_short,
        };
        Ok(Batch {
            jobs,
            next_in,
            dead_lettered: search.dead_lettered,
        })
    }

    /// Leases the entry. Returns `None` if the entry's first lease began too long ago, or lies too
    /// far in the future: nothing is changed then.
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
                id: EntryId::new(id),
                token,
                tries: narrow(tries),
                waited: duration(now.saturating_sub(accepted_at)),
                entry: row::entry(row)?,
            }))
        })
    }

    fn find_busy_rows(&mut self, search: &mut Search<'_>) -> Result<()> {
        let mut rows = self.running.query([search.now])?;
        while let Some(row) = rows.next()? {
            search.busy.extend(row::of_row(row, 0)?);
        }
        for id in &search.here {
            let of_row = self.row_of.query_row([id], |row| row::of_row(row, 0));
            search.busy.extend(of_row.optional()?.flatten());
        }
        Ok(())
    }

    /// Makes dead letters of the entries whose last permitted runs ended without a settlement.
    fn end_worn_out(&mut self, search: &mut Search<'_>) -> Result<()> {
        let mut worn_out = Vec::new();
        let (now, max_tries) = (search.now, search.request.max_tries);
        let mut ids = self.worn_out.query(params![now, max_tries])?;
        while worn_out.len() < LOOKED_AT
            && let Some(id) = ids.next()?
        {
            worn_out.extend(Some(id.get(0)?).filter(|id| !search.here.contains(id)));
        }
        drop(ids);
        if worn_out.len() == LOOKED_AT {
            search.cut_short = Some(LOOK_AGAIN);
        }
        for id in worn_out {
            self.dead_letter(id, NEVER_SETTLED, search)?;
        }
        Ok(())
    }

    /// Makes a dead letter of the entry. It is reported unless a column has a value of another
    /// type.
    fn dead_letter(&mut self, id: i64, why: &str, search: &mut Search<'_>) -> Result<()> {
        self.dead_letter.execute(params![id, search.now, why])?;
        match self.listed.query_row([id], row::listed) {
            Ok(listed) => search.dead_lettered.push(listed),
            Err(error) if row::is_unreadable(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Finds entries of this state that are due, at most one more than asked for. Running ones have
    /// leases that ended without a settlement.
    fn examine(&mut self, state: EntryState, search: &mut Search<'_>) -> Result<()> {
        let request = search.request;
        let most = search.candidates.len().saturating_add(request.most);
        let (mut passed_over, mut taken) = (0, HashSet::new());
        let of_state = params![state as i64, search.now, request.max_tries];
        let mut rows = self.due.query(of_state)?;
        while search.candidates.len() <= most
            && let Some(row) = rows.next()?
        {
            let id: i64 = row.get(0)?;
            if search.here.contains(&id) {
                continue;
            }
            let of_row = row::of_row(row, 1)?.filter(|_| request.serial_by_row);
            if of_row.is_none_or(|row| !search.busy.contains(&row) && taken.insert(row)) {
                search.candidates.push(Candidate::read(row, of_row)?);
                continue;
            }
            passed_over += 1;
            if passed_over == LOOKED_AT && state == EntryState::Queued {
                search.cut_short = Some(LOOK_AGAIN);
                drop(rows);
                return self.by_rows(most, taken, search);
            }
        }
        Ok(())
    }

    /// If a few rows have very many entries, the first entries in time all belong to them. Then one
    /// entry per row is examined, from the row where the last search ended.
    fn by_rows(
        &mut self,
        most: usize,
        mut taken: HashSet<Row>,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let mut known = search.here.clone();
        known.extend(search.candidates.iter().map(|found| found.id));
        let limit = i64::try_from(search.request.most.saturating_add(known.len() + 1));
        let limit = params![search.now, limit.unwrap_or(i64::MAX)];
        let mut rows = self.without_row.query(limit)?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if !known.contains(&id) {
                search.candidates.push(Candidate::read(row, None)?);
            }
        }
        drop(rows);
        for _ in 0..ROWS_LOOKED_AT {
            if search.candidates.len() > most {
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
            if candidate.due <= search.now && !search.busy.contains(&of_row) && taken.insert(of_row)
            {
                search.candidates.push(candidate);
            }
        }
        search.cut_short = Some(NEXT_ROWS);
        Ok(())
    }

    /// Returns the time until the next entry is due, or the next lease of another process ends.
    fn next_in(&mut self, search: &Search<'_>) -> Result<Option<Duration>> {
        let mut next: Option<i64> = None;
        for state in [EntryState::Queued, EntryState::Running] {
            let mut rows = self.later.query(params![state as i64, search.now])?;
            while let Some(row) = rows.next()? {
                let (id, until): (i64, i64) = (row.get(0)?, row.get(1)?);
                if !search.here.contains(&id) {
                    next = Some(next.map_or(until, |next| next.min(until)));
                    break;
                }
            }
        }
        Ok(next.map(|next| duration(next.saturating_sub(search.now))))
    }
}
