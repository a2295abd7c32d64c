//! A map with a limit on its entries. It forgets the oldest first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::clock::Monotonic;

/// Values by id, each until its end. When the map is full, the oldest value is removed.
///
/// It removes the first inserted value, not the least recently used one: all values live equally long, so the first inserted is
/// the first to end.
pub(super) struct Bounded<V> {
    capacity: usize,
    slots: HashMap<Arc<str>, Remembered<V>>,
    /// The ids by the numbers of their slots, so in the order of insertion.
    order: BTreeMap<u64, Arc<str>>,
    numbers: u64,
}

struct Remembered<V> {
    number: u64,
    ends: Monotonic,
    value: V,
}

impl<V> Bounded<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            slots: HashMap::new(),
            order: BTreeMap::new(),
            numbers: 0,
        }
    }

    pub(super) fn get(&self, id: &str, now: Monotonic) -> Option<&V> {
        let slot = self.slots.get(id).filter(|slot| now < slot.ends)?;
        Some(&slot.value)
    }

    /// Whether the id has a value, which may have ended.
    pub(super) fn contains(&self, id: &str) -> bool {
        self.slots.contains_key(id)
    }

    /// Inserts a value. Returns the id whose value had to be removed.
    pub(super) fn insert(&mut self, id: &Arc<str>, value: V, ends: Monotonic) -> Option<Arc<str>> {
        self.remove(id);
        self.numbers += 1;
        let number = self.numbers;
        let slot = Remembered {
            number,
            ends,
            value,
        };
        self.slots.insert(Arc::clone(id), slot);
        self.order.insert(number, Arc::clone(id));
        if self.slots.len() <= self.capacity {
            return None;
        }
        self.pop_first()
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<str>> {
        let slot = self.slots.remove(id)?;
        self.order.remove(&slot.number)
    }

    /// Removes the first value if it has ended. Returns its id.
    pub(super) fn pop_ended(&mut self, now: Monotonic) -> Option<Arc<str>> {
        let (_, first) = self.order.first_key_value()?;
        let has_ended = self.get(first, now).is_none();
        has_ended.then(|| self.pop_first())?
    }

    fn pop_first(&mut self) -> Option<Arc<str>> {
        let (_, first) = self.order.pop_first()?;
        self.slots.remove(&first);
        Some(first)
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64) -> Monotonic {
        Monotonic::new(Duration::from_secs(seconds))
    }

    fn id(number: u64) -> Arc<str> {
        format!("wh_{number}").into()
    }

    #[test]
    fn the_first_in_is_the_first_out_unless_it_was_put_in_again() {
        let mut map = Bounded::new(3);
        for number in 0..3 {
            assert_eq!(map.insert(&id(number), number, at(60)), None);
        }
        assert_eq!(map.insert(&id(0), 10, at(70)), None);
        assert_eq!(map.insert(&id(3), 3, at(70)), Some(id(1)));
        assert_eq!(map.get("wh_1", at(1)), None);
        assert_eq!(map.get("wh_0", at(1)), Some(&10));
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn nothing_is_found_from_its_end_on_and_it_can_be_removed_then() {
        let mut map = Bounded::new(10);
        map.insert(&id(1), (), at(60));
        map.insert(&id(2), (), at(61));
        assert!(map.get("wh_1", at(59)).is_some());
        assert!(map.get("wh_1", at(60)).is_none());
        assert_eq!(map.pop_ended(at(60)), Some(id(1)));
        assert_eq!(map.pop_ended(at(60)), None);
        assert_eq!(map.len(), 1);
        assert!(map.get("wh_2", at(60)).is_some());
    }

    #[test]
    fn neither_floods_nor_repetition_nor_removal_let_it_grow() {
        let mut map = Bounded::new(100);
        for number in 0..10_000 {
            map.insert(&id(number), (), at(60));
            map.insert(&id(7), (), at(60)); // always there, always the newest
            map.insert(&id(number % 50), (), at(60));
            map.remove(&id(number % 30));
            assert!(map.len() <= 100);
            assert_eq!(map.order.len(), map.len());
        }
        while map.pop_ended(at(60)).is_some() {}
        assert_eq!((map.len(), map.order.len()), (0, 0));
        for number in 0..1_000 {
            map.insert(&id(1), (), at(number));
        }
        assert_eq!(map.len(), 1);
        assert_eq!(map.order.len(), 1);
        let mut none = Bounded::new(0);
        assert_eq!(none.insert(&id(1), (), at(60)), Some(id(1)));
        assert_eq!(none.len(), 0);
    }
}
