//! The places of copies that wait for the run of another copy of their event: limited in all and
//! for one event.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, PoisonError};

use crate::dedupe::EventKey;
use crate::sync::{Mutex, MutexGuard};

/// Holds no more copies than it has places: each copy holds a body.
pub(crate) struct WaitingCopies {
    places: usize,
    places_per_event: usize,
    taken: Mutex<Taken>,
}

/// As many copies wait already, in all or for the event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyWait;

#[derive(Default)]
struct Taken {
    in_all: usize,
    /// Bounded by the places: an event is in the map only while a copy of it waits.
    by_event: HashMap<EventKey, usize>,
}

/// The most copies that wait, in all and for one event.
const PLACES: usize = 64;
const PLACES_PER_EVENT: usize = 4;

impl Default for WaitingCopies {
    fn default() -> Self {
        Self::new(PLACES, PLACES_PER_EVENT)
    }
}

impl WaitingCopies {
    fn new(places: usize, places_per_event: usize) -> Self {
        Self {
            places,
            places_per_event,
            taken: Mutex::default(),
        }
    }

    /// Takes a place, which is held until it is dropped.
    pub(super) fn enter(self: &Arc<Self>, event: EventKey) -> Result<WaitingPlace, TooManyWait> {
        let mut taken = self.lock();
        let here = taken.by_event.get(&event).copied().unwrap_or(0);
        if taken.in_all >= self.places || here >= self.places_per_event {
            return Err(TooManyWait);
        }
        taken.in_all += 1;
        taken.by_event.insert(event, here + 1);
        drop(taken);
        Ok(WaitingPlace {
            room: Arc::clone(self),
            event,
        })
    }

    /// Returns the number of copies that wait, and the number of places.
    #[cfg(feature = "metrics")]
    pub(super) fn taken(&self) -> (usize, usize) {
        (self.lock().in_all, self.places)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the waiting room.
pub(crate) struct WaitingPlace {
    room: Arc<WaitingCopies>,
    event: EventKey,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.in_all = taken.in_all.saturating_sub(1);
        if let Entry::Occupied(mut here) = taken.by_event.entry(self.event) {
            *here.get_mut() -= 1;
            if *here.get() == 0 {
                here.remove();
            }
        }
    }
}

#[cfg(all(test, shuttle))]
mod races {
    use super::*;
    use crate::sync::AtomicUsize;
    use std::sync::atomic::Ordering::SeqCst;

    #[test]
    fn no_place_is_taken_twice_and_each_comes_back() {
        crate::dedupe::races::explore(|| {
            let room = Arc::new(WaitingCopies::new(2, 1));
            let inside = Arc::new([(); 2].map(|()| AtomicUsize::new(0)));
            let guests: Vec<_> = [0, 0, 1, 1]
                .into_iter()
                .map(|event| {
                    let (room, inside) = (Arc::clone(&room), Arc::clone(&inside));
                    shuttle::thread::spawn(move || {
                        for _ in 0..2 {
                            let key = EventKey::new("default", &event.to_string());
                            let Ok(place) = room.enter(key) else { continue };
                            assert_eq!(inside[event].fetch_add(1, SeqCst), 0);
                            inside[event].fetch_sub(1, SeqCst);
                            drop(place);
                        }
                    })
                })
                .collect();
            guests.into_iter().for_each(|guest| guest.join().unwrap());
            let taken = room.lock();
            assert_eq!((taken.in_all, taken.by_event.len()), (0, 0));
        });
    }
}

#[cfg(all(test, not(shuttle)))]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_in_all_and_by_event() {
        let room = Arc::new(WaitingCopies::new(3, 2));
        let [one, two] = ["evt_1", "evt_2"].map(|id| EventKey::new("default", id));
        let full = |event| room.enter(event).err() == Some(TooManyWait);
        let places = [room.enter(one), room.enter(one)];
        assert!(full(one));
        let other = room.enter(two);
        assert!(other.is_ok() && full(two));
        drop((places, other));
        assert!(room.lock().by_event.is_empty());
        assert!(!full(one));
    }
}
