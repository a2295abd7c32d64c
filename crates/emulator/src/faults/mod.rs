//! Faults that are asked for: by the first N or by a seed, never by chance. Their table makes the
//! control API, the options, the page and the docs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// With a seed, one in so many attempts or calls has the fault.
const ONE_IN: u64 = 10;
/// The delay of `slow-answer`.
const SLOW_ANSWER: Duration = Duration::from_secs(10);

/// A fault of the API's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiFault {
    Status(u16),
    Slow(Duration),
    /// The change is made, and the connection is closed without an answer.
    ClosedAfterWrite,
}

/// The faults that are switched on. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(Arc<Mutex<FaultState>>);

/// The faults of a seed or of a snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FaultState {
    /// One entry a fault at most. An attempt has the first entry that takes it.
    entries: Vec<Entry>,
    /// Requests of the API so far, by which a seed draws.
    calls: u64,
}

/// An entry of the list: a fault, how it is drawn, and how often it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    fault: String,
    #[serde(default)]
    first: Option<u64>,
    #[serde(default)]
    seed: Option<u64>,
    #[serde(default)]
    hits: u64,
}

impl Faults {
    /// Switches a fault on: `{"fault", "first" or "seed"}`. One that is on already begins anew.
    ///
    /// # Errors
    /// A sentence that states the expected form.
    pub(crate) fn add(&self, body: &Value) -> Result<Value, String> {
        if !body.is_object() {
            return Err("expected an object of `fault`, and `first` or `seed`".to_owned());
        }
        let mut entry = Entry::deserialize(body).map_err(|error| error.to_string())?;
        entry.hits = 0;
        entry.check()?;
        let shown = entry.shown();
        self.switch_on(entry);
        Ok(shown)
    }

    /// Switches every fault on. The first draws by this seed, each other one by the next.
    pub(crate) fn add_every(&self, seed: u64) {
        for (row, after) in FAULTS.iter().zip(0..) {
            self.switch_on(Entry {
                fault: row.name.to_owned(),
                first: None,
                seed: Some(seed.wrapping_add(after)),
                hits: 0,
            });
        }
    }

    fn switch_on(&self, entry: Entry) {
        let entries = &mut self.state().entries;
        match entries.iter_mut().find(|other| other.fault == entry.fault) {
            Some(other) => *other = entry,
            None => entries.push(entry),
        }
    }

    /// Returns the entries `{"fault", "first", "seed", "hits", "on"}`: a fault is off once it has
    /// happened `first` times.
    pub(crate) fn list(&self) -> Vec<Value> {
        self.state().entries.iter().map(Entry::shown).collect()
    }

    /// Switches one fault off. Returns whether it was on.
    pub(crate) fn remove(&self, fault: &str) -> bool {
        let entries = &mut self.state().entries;
        let before = entries.len();
        entries.retain(|entry| entry.fault != fault);
        entries.len() < before
    }

    /// Switches every fault off.
    pub(crate) fn clear(&self) {
        *self.state() = FaultState::default();
    }

    /// Returns the fault for the next request of the API. `write` says whether the request changes
    /// something.
    pub(crate) fn api(&self, write: bool) -> Option<ApiFault> {
        let mut state = self.state();
        let number = state.calls;
        state.calls = state.calls.wrapping_add(1);
        let takes = |fault| write || fault != Fault::ClosedAfterWrite;
        match state.draw(Where::Api, &[&number.to_be_bytes()], takes)? {
            Fault::Status429 => Some(ApiFault::Status(429)),
            Fault::Status500 => Some(ApiFault::Status(500)),
            Fault::SlowAnswer => Some(ApiFault::Slow(SLOW_ANSWER)),
            Fault::ClosedAfterWrite => Some(ApiFault::ClosedAfterWrite),
            _ => None,
        }
    }

    /// Returns the fault for an attempt, counted from 1. With a seed it depends on nothing but the
    /// seed and these three.
    pub(crate) fn delivery(
        &self,
        subscription: &str,
        event_id: &str,
        attempt: u32,
    ) -> Option<Fault> {
        let mut state = self.state();
        if state.entries.is_empty() {
            return None;
        }
        let attempt = attempt.to_be_bytes();
        let of = [subscription.as_bytes(), event_id.as_bytes(), &attempt[..]];
        state.draw(Where::Delivery, &of, |_| true)
    }

    pub(crate) fn saved(&self) -> FaultState {
        self.state().clone()
    }

    /// Replaces all faults, by those of a seed that was checked.
    pub(crate) fn set(&self, faults: FaultState) {
        *self.state() = faults;
    }

    fn state(&self) -> MutexGuard<'_, FaultState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultState {
    /// # Errors
    /// The place of the first wrong entry, and a sentence that states the expected form.
    pub(crate) fn check(&self) -> Result<(), (usize, String)> {
        for (at, entry) in self.entries.iter().enumerate() {
            entry.check().map_err(|message| (at, message))?;
            let mut before = self.entries[..at].iter();
            if before.any(|other| other.fault == entry.fault) {
                let message = format!("`{}` is listed twice, expected it once", entry.fault);
                return Err((at, message));
            }
        }
        Ok(())
    }

    /// Draws at most one fault, and counts its hit.
    fn draw(&mut self, place: Where, of: &[&[u8]], takes: impl Fn(Fault) -> bool) -> Option<Fault> {
        self.entries.iter_mut().find_map(|entry| {
            let fault = Fault::named(&entry.fault)?;
            let taken = fault.about().place == place && takes(fault) && entry.is_drawn(of);
            entry.hits += u64::from(taken);
            taken.then_some(fault)
        })
    }
}

impl Entry {
    fn check(&self) -> Result<(), String> {
        if Fault::named(&self.fault).is_none() {
            let names: Vec<_> = FAULTS.iter().map(|row| row.name).collect();
            // A long name is not repeated in the message.
            let shown: String = self.fault.chars().take(40).collect();
            let names = names.join(", ");
            return Err(format!("unknown fault `{shown}`, expected one of {names}"));
        }
        match (self.first, self.seed) {
            (Some(1..), None) | (None, Some(_)) => Ok(()),
            (Some(0), None) => Err("`first` is at least 1".to_owned()),
            _ => Err(
                "expected either `first`, the number of times that the fault happens, or `seed`"
                    .to_owned(),
            ),
        }
    }

    fn shown(&self) -> Value {
        let mut shown = serde_json::to_value(self).unwrap_or_default();
        shown["on"] = self.first.is_none_or(|first| self.hits < first).into();
        shown
    }

    fn is_drawn(&self, of: &[&[u8]]) -> bool {
        match (self.first, self.seed) {
            (Some(first), _) => self.hits < first,
            (None, Some(seed)) => {
                let drawn = hash(seed, self.fault.as_bytes(), of);
                fastrand::Rng::with_seed(drawn).u64(..ONE_IN) == 0
            }
            (None, None) => false,
        }
    }
}

/// FNV-1a: the same in every process, so that a seed can be used again.
fn hash(seed: u64, name: &[u8], of: &[&[u8]]) -> u64 {
    let parts = of
        .iter()
        .flat_map(|part| [0].into_iter().chain(part.iter().copied()));
    let bytes = seed
        .to_be_bytes()
        .into_iter()
        .chain(name.iter().copied())
        .chain(parts);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Where a fault happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// On the way from the emulator to a receiver.
    Delivery,
    /// In the answer of the API.
    Api,
}

/// A row of the table.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) fault: Fault,
    pub(crate) name: &'static str,
    pub(crate) place: Where,
    pub(crate) about: &'static str,
}

macro_rules! faults {
    ($($place:ident $fault:ident $name:literal: $about:literal;)*) => {
        /// A fault that can be asked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Fault {
            $($fault,)*
        }

        /// Every fault, those of deliveries first.
        pub(crate) const FAULTS: &[About] = &[
            $(About { fault: Fault::$fault, name: $name, place: Where::$place, about: $about },)*
        ];
    };
}

faults! {
    Delivery AlteredByte "altered-byte": "one byte of the body is changed after it was signed";
    Delivery Stale "stale": "the delivery is signed with a time 10 minutes ago";
    Delivery Ahead "ahead": "the delivery is signed with a time 10 minutes ahead";
    Delivery Duplicated "duplicated": "the delivery arrives twice, side by side";
    Delivery Reordered "reordered": "the delivery is held until the subscription's next one has ended, for 10 seconds at most";
    Delivery LostAnswer "lost-answer": "the delivery arrives and is answered, but its answer is lost";
    Delivery Slow "slow": "the delivery arrives after 3 seconds, and its answer would take 3 more: the sender hangs up after 5";
    Delivery Reset "reset": "the connection is reset in the middle of the body";
    Delivery WrongSecret "wrong-secret": "the delivery is signed with another secret";
    Delivery Gzip "gzip": "the body is compressed on the way, with Content-Encoding: gzip";
    Api Status429 "status-429": "the API answers 429 RATE_LIMITED and does nothing";
    Api Status500 "status-500": "the API answers 500 INTERNAL_ERROR and does nothing";
    Api SlowAnswer "slow-answer": "the API does as requested, and answers 10 seconds later";
    Api ClosedAfterWrite "closed-after-write": "the API makes the change and closes the connection without an answer; reads are not affected";
}

impl Fault {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let row = FAULTS.iter().find(|row| row.name == name);
        row.map(|row| row.fault)
    }

    pub(crate) fn about(self) -> &'static About {
        // The table has the rows in the order of the enum: a test compares them.
        &FAULTS[self as usize]
    }

    pub(crate) fn name(self) -> &'static str {
        self.about().name
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn faults(asked: &[Value]) -> Faults {
        let faults = Faults::default();
        for body in asked {
            faults.add(body).unwrap();
        }
        faults
    }

    fn hits(faults: &Faults) -> Vec<u64> {
        let list = faults.list();
        list.iter()
            .map(|entry| entry["hits"].as_u64().unwrap())
            .collect()
    }

    #[test]
    fn the_first_attempts_have_the_faults_one_after_the_other() {
        let faults = faults(&[
            json!({ "fault": "stale", "first": 2 }),
            json!({ "fault": "status-500", "first": 1 }),
            json!({ "fault": "gzip", "first": 1 }),
        ]);
        let drawn: Vec<_> = (0..5)
            .map(|_| faults.delivery("wh_1", "evt_1", 1))
            .collect();
        let (stale, gzip) = (Some(Fault::Stale), Some(Fault::Gzip));
        assert_eq!(drawn, [stale, stale, gzip, None, None]);
        assert_eq!(faults.api(false), Some(ApiFault::Status(500)));
        assert_eq!(faults.api(false), None);
        assert_eq!(hits(&faults), [2, 1, 1]);
        let shown = json!({ "fault": "stale", "first": 2, "seed": null, "hits": 2, "on": false });
        assert_eq!(faults.list()[0], shown);
        // Asked for again, it begins anew, and there is still one entry.
        faults
            .add(&json!({ "fault": "stale", "first": 1 }))
            .unwrap();
        assert_eq!(hits(&faults), [0, 1, 1]);
        assert!(faults.remove("stale") && !faults.remove("stale"));
        assert_eq!(hits(&faults), [1, 1]);
        faults.clear();
        assert_eq!(faults.list(), [Value::Null; 0]);
    }

    #[test]
    fn a_seed_draws_one_in_ten_and_the_same_ones_again() {
        for row in FAULTS.iter().filter(|row| row.place == Where::Delivery) {
            let drawn = |seed: u64| -> Vec<bool> {
                let faults = faults(&[json!({ "fault": row.name, "seed": seed })]);
                let events = (0..10_000).map(|number| format!("evt_{number}"));
                let drawn = events
                    .map(|id| faults.delivery("wh_1", &id, 1).is_some())
                    .collect();
                assert!(
                    hits(&faults)[0].abs_diff(1_000) < 150,
                    "{}: {:?}",
                    row.name,
                    hits(&faults)
                );
                drawn
            };
            assert_eq!(drawn(7), drawn(7));
            assert_ne!(drawn(7), drawn(8));
        }
        let faults = faults(&[json!({ "fault": "status-429", "seed": 1 })]);
        let count = (0..10_000).filter(|_| faults.api(false).is_some()).count();
        assert!(count.abs_diff(1_000) < 150, "{count}");
    }

    #[test]
    fn reads_are_not_closed_after_a_write() {
        let faults = faults(&[json!({ "fault": "closed-after-write", "first": 1 })]);
        assert_eq!(faults.api(false), None);
        assert_eq!(faults.api(true), Some(ApiFault::ClosedAfterWrite));
        assert_eq!(faults.api(true), None);
    }

    #[test]
    fn what_is_not_a_fault_is_refused_with_what_exists() {
        let faults = Faults::default();
        for (body, told) in [
            (json!({ "fault": "gzipped", "first": 1 }), "altered-byte"),
            (json!({ "fault": "gzip" }), "`first`"),
            (json!({ "fault": "gzip", "first": 1, "seed": 2 }), "`first`"),
            (json!({ "fault": "gzip", "first": 0 }), "at least 1"),
            (json!({ "fault": "gzip", "first": -1 }), "u64"),
            (json!({ "fault": "gzip", "chance": 0.5 }), "chance"),
            (json!([]), "fault"),
        ] {
            let error = faults.add(&body).unwrap_err();
            assert!(error.contains(told), "{body}: {error}");
        }
        assert!(faults.list().is_empty());
    }

    // fault F36: a snapshot of the emulator loses the hits of faults, the logs, the rate windows, or what the attempts of a delivery were
    #[test]
    fn a_snapshot_keeps_the_hits() {
        let faults = faults(&[json!({ "fault": "reset", "first": 3 })]);
        faults.delivery("wh_1", "evt_1", 1);
        let other = Faults::default();
        other.set(faults.saved());
        assert_eq!(other.list(), faults.list());
        let gzip = json!({ "fault": "gzip", "seed": 1 });
        let twice = json!({ "entries": [gzip, gzip], "calls": 0 });
        let twice: FaultState = serde_json::from_value(twice).unwrap();
        let (at, told) = twice.check().unwrap_err();
        assert!(at == 1 && told.contains("twice"), "{told}");
    }

    #[test]
    fn the_table_has_each_fault_in_the_order_of_the_enum() {
        for (at, row) in FAULTS.iter().enumerate() {
            assert_eq!(row.fault as usize, at);
            assert_eq!(Fault::named(row.name), Some(row.fault));
            assert_eq!(row.fault.name(), row.name);
            assert!(!row.about.is_empty());
        }
        assert_eq!(FAULTS.len(), Fault::ClosedAfterWrite as usize + 1);
        assert_eq!(Fault::named("none"), None);
    }
}
