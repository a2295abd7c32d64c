//! Ids and names of properties, from the data models' details: remembered for a time, and asked for
//! once however many calls wait.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::error::{Error, ErrorKind};
use crate::model::DataModel;

/// A limit of memory: the data models that are remembered.
const MAX_MODELS: usize = 1_000;

/// The names of a data model's properties.
#[derive(Debug)]
pub(crate) struct Names {
    model: String,
    /// When the detail was asked for.
    pub(crate) since: Instant,
    name_of: HashMap<String, String>,
    ids_of: HashMap<String, Vec<String>>,
    /// Ids of values for which a detail was asked for again, and that it did not have.
    unknown: Mutex<HashSet<String>>,
}

/// The reason why a name has no id.
#[derive(Debug)]
pub(crate) enum NoId {
    Unknown(Error),
    Ambiguous(Error),
}

impl Names {
    pub(crate) fn of(detail: &DataModel, since: Instant) -> Self {
        let mut name_of = HashMap::new();
        let mut ids_of: HashMap<String, Vec<String>> = HashMap::new();
        for property in &detail.properties {
            name_of.insert(property.id.clone(), property.name.clone());
            let ids = ids_of.entry(property.name.clone()).or_default();
            ids.push(property.id.clone());
        }
        Self {
            model: detail.id.clone(),
            since,
            name_of,
            ids_of,
            unknown: Mutex::default(),
        }
    }

    /// Returns the ids that have no name, and for which no later detail was asked for yet.
    pub(crate) fn missing<'i>(&self, ids: impl Iterator<Item = &'i String>) -> HashSet<String> {
        let unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        ids.filter(|id| !self.name_of.contains_key(*id) && !unknown.contains(*id))
            .cloned()
            .collect()
    }

    /// Notes ids for which these names were asked for, and those of which `older` knew the same.
    pub(crate) fn asked_for(&self, ids: HashSet<String>, older: &Self) {
        if std::ptr::eq(self, older) {
            return;
        }
        let known = older.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.clone();
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        unknown.extend(known.into_iter().chain(ids));
    }

    /// Returns the id of a name.
    pub(crate) fn id(&self, name: &str) -> Result<&str, NoId> {
        match self.ids_of.get(name).map(Vec::as_slice) {
            Some([id]) => Ok(id),
            None | Some([]) => {
                let message = format!("the data model {} has no property {name:?}", self.model);
                Err(NoId::Unknown(Error::new(
                    ErrorKind::UnknownProperty,
                    message,
                )))
            }
            Some(ids) => {
                let message = format!(
                    "the data model {} has several properties {name:?}: {}",
                    self.model,
                    ids.join(", ")
                );
                Err(NoId::Ambiguous(Error::new(
                    ErrorKind::AmbiguousProperty,
                    message,
                )))
            }
        }
    }

    /// Returns the name of an id, where the detail has it.
    ///
    /// # Errors
    /// Other properties have the same name.
    pub(crate) fn name(&self, id: &str) -> Result<Option<&str>, Error> {
        let Some(name) = self.name_of.get(id) else {
            return Ok(None);
        };
        match self.id(name) {
            Ok(_) => Ok(Some(name)),
            Err(NoId::Unknown(error) | NoId::Ambiguous(error)) => Err(error),
        }
    }
}

/// A look-up that is under way or done.
#[derive(Clone, Debug)]
struct Entry {
    since: Instant,
    cell: Arc<OnceCell<Arc<Names>>>,
}

/// The names of the data models that were used last.
#[derive(Debug)]
pub(crate) struct Remembered {
    ttl: Duration,
    entries: Mutex<HashMap<String, Entry>>,
}

impl Remembered {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            entries: Mutex::default(),
        }
    }

    /// Returns the names of a data model. `behind`: only those that were asked for later than this.
    pub(crate) async fn get<F>(
        &self,
        model: &str,
        behind: Option<Instant>,
        look_up: impl FnOnce(Instant) -> F,
    ) -> Result<Arc<Names>, Error>
    where
        F: Future<Output = Result<Names, Error>>,
    {
        let entry = self.entry(model, behind);
        // One caller looks up; where it fails or goes away, the next one that waits tries itself.
        let names = entry
            .cell
            .get_or_try_init(|| async { look_up(entry.since).await.map(Arc::new) });
        names.await.cloned()
    }

    pub(crate) fn forget(&self, model: &str) {
        self.locked().remove(model);
    }

    fn entry(&self, model: &str, behind: Option<Instant>) -> Entry {
        let now = Instant::now();
        let mut entries = self.locked();
        let is_fresh = |entry: &Entry| now.duration_since(entry.since) < self.ttl;
        if let Some(entry) = entries.get(model)
            && is_fresh(entry)
            && behind.is_none_or(|behind| entry.since > behind)
        {
            return entry.clone();
        }
        if entries.len() >= MAX_MODELS {
            entries.retain(|_, entry| is_fresh(entry));
        }
        if entries.len() >= MAX_MODELS {
            entries.clear();
        }
        let new = Entry {
            since: now,
            cell: Arc::default(),
        };
        entries.insert(model.to_owned(), new.clone());
        new
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
