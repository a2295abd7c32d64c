//! The order of an object's keys.

use std::cmp::Ordering;

/// The order in which an object's keys are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::explain) enum Order {
    AsIs,
    /// The order of the service's specification; names of properties keep their order.
    Service,
    Sorted,
    ByLength,
}

/// The kind of an object in a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Envelope,
    /// `properties` and `changes`: the users choose their keys.
    Names,
    Values,
}

impl Place {
    pub(super) fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Envelope, "properties" | "changes") => Self::Names,
            (Self::Names, _) => Self::Values,
            (place, _) => place,
        }
    }
}

/// The keys of the service's own objects, in the order of its specification. No two lists have the same keys in different orders.
const SERVICE_ORDER: [&str; 18] = [
    "id",
    "type",
    "createdAt",
    "workspaceId",
    "data",
    "datamodelId",
    "datamodelName",
    "rowId",
    "properties",
    "changes",
    "createdBy",
    "updatedBy",
    "deletedBy",
    "name",
    "email",
    "before",
    "after",
    "url",
];

impl Order {
    pub(super) fn compare(self, one: &str, other: &str, place: Place) -> Ordering {
        match self {
            Self::AsIs => Ordering::Equal,
            Self::Sorted => one.cmp(other),
            Self::ByLength => one.len().cmp(&other.len()).then_with(|| one.cmp(other)),
            Self::Service if place == Place::Names => Ordering::Equal,
            Self::Service => rank(one).cmp(&rank(other)),
        }
    }
}

fn rank(key: &str) -> usize {
    let known = SERVICE_ORDER.iter().position(|known| *known == key);
    known.unwrap_or(SERVICE_ORDER.len())
}
