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

    /// Inserts a value. Returns whether another value had to be removed before its end.
    pub(super) fn insert(&mut self, id: &Arc<str>, value: V, ends: Monotonic) -> bool {
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
        let full = self.slots.len() > self.capacity;
        if full && let Some((_, first)) = self.order.pop_first() {
            self.slots.remove(&first);
        }
        full
    }

    pub(super) fn remove(&mut self, id: &str) {
        if let Some(slot) = self.slots.remove(id) {
            self.order.remove(&slot.number);
        }
    }

    pub(super) fn clear(&mut self) {
        self.slots.clear();
        self.order.clear();
    }

    /// Forgets the values that have ended.
    pub(super) fn purge(&mut self, now: Monotonic) {
        while let Some(first) = self.order.first_entry() {
            if self
                .slots
                .get(first.get())
                .is_some_and(|slot| now < slot.ends)
            {
                return;
            }
            self.slots.remove(&first.remove());
        }
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
            assert!(!map.insert(&id(number), number, at(60)));
        }
        assert!(!map.insert(&id(0), 10, at(70)));
        assert!(map.insert(&id(3), 3, at(70)));
        assert_eq!(map.get("wh_1", at(1)), None);
        assert_eq!(map.get("wh_0", at(1)), Some(&10));
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn nothing_is_found_from_its_end_on_and_purging_lets_it_go() {
        let mut map = Bounded::new(10);
        map.insert(&id(1), (), at(60));
        map.insert(&id(2), (), at(61));
        assert!(map.get("wh_1", at(59)).is_some());
        assert!(map.get("wh_1", at(60)).is_none());
        map.purge(at(60));
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
            assert!(map.order.len() <= 2 * 100 + 33);
        }
        map.clear();
        for number in 0..1_000 {
            map.insert(&id(1), (), at(number));
        }
        assert_eq!(map.len(), 1);
        assert!(map.order.len() <= 34, "{}", map.order.len());
        let mut none = Bounded::new(0);
        assert!(none.insert(&id(1), (), at(60)));
        assert_eq!(none.len(), 0);
    }
}
