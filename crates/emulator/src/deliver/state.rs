//! What the engine knows: subscriptions, deliveries, and which attempt comes when. Nothing here
//! waits or sends.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hookgate_testing::sender;
use tokio::task::JoinSet;

use super::record::{Delivery, DeliveryState, Number};
use super::subscription::Subscription;
use crate::time::Moment;

/// Requests of one subscription at the same time, as the sender of `hookgate-testing` has them.
const AT_ONCE: usize = 16;
/// Deliveries at their end that are kept, the newest ones.
const FINISHED: usize = 10_000;
/// Deliveries that wait for an attempt. Beyond that new ones are discarded, with a reason.
const PENDING: usize = 50_000;
/// What all deliveries together keep, about.
const BYTES: usize = 64 << 20;

/// The state of the engine.
#[derive(Default)]
pub(super) struct State {
    /// Increased by each `clear`: an attempt that began in an earlier epoch is ignored when it
    /// ends.
    pub(super) epoch: u64,
    pub(super) next: Number,
    pub(super) stopped: bool,
    pub(super) lanes: Vec<Lane>,
    pub(super) deliveries: BTreeMap<Number, Delivery>,
    /// Planned attempts, by their time. When the time has come, the attempt moves to `Lane::ready`.
    pub(super) due: BTreeSet<(Moment, Number)>,
    /// Attempts under way, by their start.
    pub(super) flying: BTreeSet<(Moment, Number)>,
    /// All attempts that were started.
    pub(super) started: u64,
    pub(super) tasks: JoinSet<()>,
    finished: VecDeque<Number>,
    bytes: usize,
}

/// A subscription with what waits for it.
pub(super) struct Lane {
    pub(super) settings: Subscription,
    pub(super) sender: sender::Subscription,
    /// Every delivery that is not at its end.
    pub(super) pending: BTreeSet<Number>,
    /// Attempts whose time has come.
    pub(super) ready: BTreeSet<(Moment, Number)>,
    pub(super) flying: usize,
    /// Held back by the fault `reordered`.
    pub(super) held: BTreeSet<Number>,
}

impl Lane {
    pub(super) fn new(settings: Subscription, sender: sender::Subscription) -> Self {
        Self {
            settings,
            sender,
            pending: BTreeSet::new(),
            ready: BTreeSet::new(),
            flying: 0,
            held: BTreeSet::new(),
        }
    }

    /// Takes the next attempt that may begin. One by one, only the oldest delivery may.
    fn next(&mut self, one_by_one: bool) -> Option<(Moment, Number)> {
        if self.flying >= AT_ONCE || (one_by_one && self.flying > 0) {
            return None;
        }
        let oldest = |number: &Number| !one_by_one || self.pending.first() == Some(number);
        let found = self
            .ready
            .iter()
            .find(|(_, number)| oldest(number))
            .copied()?;
        self.ready.remove(&found);
        Some(found)
    }
}

impl State {
    pub(super) fn lane(&mut self, subscription: &str) -> Option<&mut Lane> {
        let of_id = |lane: &&mut Lane| lane.settings.id == subscription;
        self.lanes.iter_mut().find(of_id)
    }

    /// Returns the ids of the subscriptions that take such an event.
    pub(super) fn takers(&self, event_type: &str, model: Option<&str>) -> Vec<String> {
        let settings = self.lanes.iter().map(|lane| &lane.settings);
        let takers = settings.filter(|settings| settings.takes(event_type, model));
        takers.map(|settings| settings.id.clone()).collect()
    }

    /// Discards everything that waits for a subscription. Attempts under way go on to their end.
    pub(super) fn discard_all(&mut self, subscription: &str, reason: &str) {
        let pending = self.lane(subscription).map(|lane| lane.pending.clone());
        for number in pending.unwrap_or_default() {
            if let Some(delivery) = self.deliveries.get_mut(&number) {
                delivery.reason = Some(reason.to_owned());
            }
            self.end(number, DeliveryState::Discarded);
        }
    }

    pub(super) fn find(&self, id: &str) -> Option<(Number, &Delivery)> {
        let mut newest = self.deliveries.iter().rev();
        let found = newest.find(|(_, delivery)| delivery.id == id)?;
        Some((*found.0, found.1))
    }

    /// Adds a delivery whose first attempt comes at this time. Where too many wait already, it is
    /// discarded.
    pub(super) fn add(&mut self, mut delivery: Delivery, due: Moment) -> Number {
        let number = self.next;
        self.next += 1;
        self.bytes += delivery.weight();
        self.trim();
        let waiting: usize = self.lanes.iter().map(|lane| lane.pending.len()).sum();
        let full = waiting >= PENDING || self.bytes > BYTES;
        if full {
            delivery.reason = Some(format!("{waiting} deliveries wait already"));
        }
        let subscription = delivery.subscription.clone();
        delivery.state = DeliveryState::Pending;
        delivery.number = number;
        self.deliveries.insert(number, delivery);
        match self.lane(&subscription) {
            Some(lane) if !full => {
                lane.pending.insert(number);
                self.wait_until(number, due);
            }
            _ => self.end(number, DeliveryState::Discarded),
        }
        number
    }

    /// Plans the next attempt of a delivery.
    pub(super) fn wait_until(&mut self, number: Number, due: Moment) {
        if let Some(delivery) = self.deliveries.get_mut(&number) {
            delivery.due = Some(due);
            self.due.insert((due, number));
        }
    }

    /// Makes every attempt ready whose time has come, and takes those that may begin now, in order
    /// of time.
    pub(super) fn begin(&mut self, now: Moment, one_by_one: bool) -> Vec<(Moment, Number)> {
        while let Some(first) = self.due.first().copied().filter(|(due, _)| *due <= now) {
            self.due.remove(&first);
            let subscription = self.deliveries.get(&first.1);
            let subscription = subscription.map(|delivery| delivery.subscription.clone());
            if let Some(lane) = subscription.and_then(|id| self.lane(&id)) {
                lane.held.remove(&first.1);
                lane.ready.insert(first);
            }
        }
        let mut started = Vec::new();
        for lane in &mut self.lanes {
            while let Some(next) = lane.next(one_by_one) {
                lane.flying += 1;
                started.push(next);
            }
        }
        started
    }

    /// Whether an attempt of a delivery before this number waits for a place of its subscription.
    pub(super) fn is_crowded(&self, before: Number) -> bool {
        let older = |lane: &Lane| lane.ready.iter().any(|(_, number)| *number < before);
        self.lanes.iter().any(|lane| lane.flying > 0 && older(lane))
    }

    /// Lets the deliveries go that were held back until a later one has ended.
    pub(super) fn release(&mut self, subscription: &str, ended: Number, now: Moment) {
        let Some(lane) = self.lane(subscription) else {
            return;
        };
        let later = lane.held.split_off(&ended);
        for number in std::mem::replace(&mut lane.held, later) {
            if let Some(due) = self
                .deliveries
                .get(&number)
                .and_then(|delivery| delivery.due)
            {
                self.due.remove(&(due, number));
                self.wait_until(number, now.min(due));
            }
        }
    }

    /// Ends a delivery: no attempt comes any more.
    pub(super) fn end(&mut self, number: Number, state: DeliveryState) {
        let Some(delivery) = self.deliveries.get_mut(&number) else {
            return;
        };
        let due = delivery.due.take();
        let before = std::mem::replace(&mut delivery.state, state);
        if before != DeliveryState::Pending {
            return;
        }
        let subscription = delivery.subscription.clone();
        if let Some(due) = due {
            self.due.remove(&(due, number));
        }
        if let Some(lane) = self.lane(&subscription) {
            lane.pending.remove(&number);
            lane.held.remove(&number);
            // A ready attempt still has its `due`, so it is found without a search. A search
            // through all ready attempts would take seconds where thousands of deliveries are
            // discarded.
            if let Some(due) = due {
                lane.ready.remove(&(due, number));
            }
        }
        self.finished.push_back(number);
    }

    /// Counts what an attempt has added to a delivery, and forgets the oldest of those that are at
    /// their end.
    pub(super) fn grown(&mut self, by: usize) {
        self.bytes += by;
        self.trim();
    }

    fn trim(&mut self) {
        while self.finished.len() > FINISHED || self.bytes > BYTES {
            let Some(oldest) = self.finished.pop_front() else {
                return;
            };
            if let Some(delivery) = self.deliveries.remove(&oldest) {
                self.bytes = self.bytes.saturating_sub(delivery.weight());
            }
        }
    }

    /// Forgets everything, and stops the attempts under way.
    pub(super) fn clear(&mut self) {
        self.tasks.abort_all();
        let tasks = std::mem::take(&mut self.tasks);
        *self = Self {
            epoch: self.epoch + 1,
            stopped: self.stopped,
            started: self.started,
            tasks,
            ..Self::default()
        };
    }
}
