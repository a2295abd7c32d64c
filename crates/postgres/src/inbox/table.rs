//! The inbox of one name in the table that programs share.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hookgate::dedupe::ScopesInUse;

use super::notify::Notifier;
use crate::Postgres;
use crate::task::Task;

pub(super) struct Table {
    pub(super) postgres: Postgres,
    /// The name of the inbox.
    pub(super) name: Arc<str>,
    /// The notifications between the processes that share the table.
    pub(super) notifier: Notifier,
    /// The time between two cleanings, in each process with workers.
    pub(super) clean_interval: Duration,
    pub(super) cleaning: Task,
    pub(super) scopes: ScopesInUse,
    /// The row after which the next search from row to row begins, so that each row has its turn.
    pub(super) after_row: Mutex<Vec<u8>>,
}

impl Table {
    pub(super) fn new(postgres: Postgres, name: &str) -> Self {
        let name: Arc<str> = name.into();
        Self {
            notifier: Notifier::new(postgres.clone(), &name),
            clean_interval: Duration::from_secs(5),
            cleaning: Task::default(),
            scopes: ScopesInUse::default(),
            postgres,
            name,
            after_row: Mutex::default(),
        }
    }
}
