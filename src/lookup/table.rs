//! The rings that are held in memory, and the size of the largest.

use std::collections::HashMap;
use std::sync::Arc;

use crate::verify::Ring;

pub(super) enum Table {
    Single(Arc<Ring>),
    BySubscription {
        rings: HashMap<Arc<str>, Arc<Ring>>,
        /// The number of keys of the largest ring.
        most_keys: usize,
    },
}

impl Table {
    pub(super) fn by_subscription(rings: HashMap<Arc<str>, Arc<Ring>>) -> Self {
        let most_keys = rings.values().map(|ring| ring.key_count()).max();
        Self::BySubscription {
            rings,
            most_keys: most_keys.unwrap_or_default(),
        }
    }
}
