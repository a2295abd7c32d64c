//! How a row differs from the mirror, and whether the list is in the order of creation.

use super::hash::{NameHash, ValueHash};

/// A row that differed when it was last seen.
pub(super) struct Difference {
    pub(super) pass: u64,
    /// The mirror's side. It stays the same where no event was handled.
    pub(super) was: Was,
}

#[derive(PartialEq)]
pub(super) enum Was {
    /// The row was not known to be created.
    Unknown,
    /// The row was known to be deleted, in this revision.
    Deleted(u64),
    /// The properties that differed, and their values in the mirror.
    Other(Vec<(NameHash, Option<ValueHash>)>),
    /// The row's `updatedAt` was older than that of this revision.
    Newer(u64),
}

/// Whether the rows' `createdAt` rise, or fall, along the list.
pub(super) struct Order {
    last: Option<i64>,
    rises: bool,
    falls: bool,
}

impl Was {
    /// Whether the mirror's side of the difference is still there.
    pub(super) fn is_still(&self, now: &Self) -> bool {
        match (self, now) {
            (Self::Other(was), Self::Other(now)) => now.iter().any(|pair| was.contains(pair)),
            (was, now) => was == now,
        }
    }
}

impl Order {
    pub(super) fn new() -> Self {
        Self {
            last: None,
            rises: true,
            falls: true,
        }
    }

    /// The next page repeats rows of this one.
    pub(super) fn new_page(&mut self) {
        self.last = None;
    }

    pub(super) fn take(&mut self, created_at: Option<i64>) {
        match (self.last, created_at) {
            (Some(last), Some(now)) => {
                self.rises &= last <= now;
                self.falls &= last >= now;
            }
            (None, Some(_)) => {}
            // Without a date the order is unknown.
            (_, None) => (self.rises, self.falls) = (false, false),
        }
        self.last = created_at;
    }

    pub(super) fn is_of_creation(&self) -> bool {
        self.rises || self.falls
    }
}
