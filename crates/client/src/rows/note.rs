//! Notes writes in the ledger: before they are sent, and once their outcome is known.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hookgate::dedupe::StoreError;
use hookgate::{event::Json, internal::from_foreign_json};
use tokio::time::timeout;

use super::{Rows, Values, Wire};
use crate::call::Before;
use crate::error::{Error, ErrorKind};
use crate::ledger::{Entry, Kept, Place, Writer};
use crate::names::Names;
use crate::reconcile::RowHash;
use crate::reconcile::hash::{name_hash, value_hash};

/// How long a write that has ended waits for the ledger.
const LEDGER_TIMEOUT: Duration = Duration::from_secs(5);

/// The rows that one request writes. Nothing, where the client has no ledger.
pub(super) struct Note<'r>(Option<Open<'r>>);

struct Open<'r> {
    writer: &'r Writer,
    model: &'r str,
    change: Change<'r>,
    names: Option<Arc<Names>>,
    written: Vec<RowHash>,
    time: Duration,
    kept: OnceLock<Vec<Kept>>,
}

#[derive(Clone, Copy)]
enum Change<'r> {
    Create,
    Update(&'r str),
    Delete(&'r str),
}

impl<R> Rows<R> {
    /// Prepares the note of a request: rows to create, new values of a row, or no values where it
    /// is deleted.
    pub(super) async fn note<'r>(
        &'r self,
        row: Option<&'r str>,
        values: &[Values],
    ) -> Result<Note<'r>, Error> {
        let Some(writer) = self.client.writer.as_deref() else {
            return Ok(Note(None));
        };
        let change = match row {
            None => Change::Create,
            Some(row) if values.is_empty() => Change::Delete(row),
            Some(row) => Change::Update(row),
        };
        let names = match change {
            Change::Delete(_) => None,
            _ => Some(self.client.names(&self.model, None).await?),
        };
        let written = match &names {
            Some(names) => values.iter().map(|values| hash(names, values)).collect(),
            None => vec![RowHash::default()],
        };
        Ok(Note(Some(Open {
            writer,
            model: &self.model,
            change,
            names,
            written,
            time: self.client.options().total_timeout,
            kept: OnceLock::new(),
        })))
    }
}

impl Note<'_> {
    /// Notes the rows, just before the request is sent.
    pub(super) fn before(&self) -> Option<Before<'_>> {
        let open = self.0.as_ref()?;
        let place = match open.change {
            Change::Create => Place::creating(open.model),
            Change::Update(row) => Place::updated(open.model, row),
            Change::Delete(row) => Place::deleted(open.model, row),
        };
        Some(Box::pin(async move {
            let ledger = &open.writer.ledger;
            let entry = Entry::new(place, &open.writer.name, ledger.now(), open.time);
            let kept = ledger.open(entry, &open.written).await.map_err(|error| {
                let message = "the write was not sent, since the ledger could not note it";
                Error::new(ErrorKind::Ledger, message).caused_by(Box::new(error))
            })?;
            // This runs once.
            let _ = open.kept.set(kept);
            Ok(())
        }))
    }

    /// Notes the outcome: the rows of the answer, none of them after a deletion. Where the ledger
    /// can't note it, the outcome stays unknown there.
    pub(super) async fn end(self, made: Result<&[Wire], &Error>) {
        let Some(open) = self.0 else {
            return;
        };
        let ledger = &open.writer.ledger;
        let now = ledger.now();
        let answered = |row: &Wire| match &open.names {
            Some(names) => hash(names, &row.data),
            None => RowHash::default(),
        };
        let end = |at: usize, entry: Entry| {
            let place = entry.place;
            Some(match (made, open.change) {
                (Err(error), _) if !error.is_outcome_unknown() => return None,
                (Err(_), Change::Create) => {
                    let place = Place::maybe_created(open.model, &entry.written);
                    entry.unknown(place, now)
                }
                (Err(_), _) => entry.unknown(place, now),
                (Ok(_), Change::Delete(_)) => entry.made(place),
                (Ok(rows), Change::Update(_)) => match rows.first() {
                    Some(row) => entry.updated(answered(row), row.updated_at.as_deref(), now),
                    None => entry.unknown(place, now),
                },
                // All rows of the answer were made by this request, so it does not matter which
                // entry stands for which. Entries without one were refused.
                (Ok(rows), Change::Create) => {
                    let row = rows.get(at)?;
                    let entry = entry.answering(answered(row));
                    entry.made(Place::created(open.model, &row.id))
                }
            })
        };
        let kept = open.kept.into_inner().unwrap_or_default();
        let note = async {
            for (at, kept) in kept.into_iter().enumerate() {
                ledger.close(kept, |entry| end(at, entry)).await?;
            }
            Ok::<_, StoreError>(())
        };
        // The write's own result matters more.
        let _ = timeout(LEDGER_TIMEOUT, note).await;
    }
}

/// Hashes values by id as their event has them: by name. A property whose name another property has
/// is left out, since events name properties by their names.
fn hash(names: &Names, values: &Values) -> RowHash {
    let mut hash = RowHash::default();
    for (id, value) in values {
        let (Ok(name), Ok(json)) = (
            names.name(id),
            from_foreign_json::<Json>(value.get().as_bytes()),
        ) else {
            continue;
        };
        let name = name.unwrap_or(id);
        hash.set(name_hash(name), value_hash(name, &json));
    }
    hash
}
