//! The kept deliveries, which of them are shown, and the place of the cursor.

use std::collections::VecDeque;

use hookgate_record::LoggedDelivery;

use super::filter::Filter;
use super::item::Item;

/// The limit of kept bytes of deliveries, whatever their number.
pub(super) const MAX_BYTES: usize = 64 << 20;

#[derive(Debug)]
pub(crate) struct List {
    /// The newest last.
    items: VecDeque<Item>,
    keep: usize,
    most_bytes: usize,
    bytes: usize,
    received: u64,
    evicted: u64,
    filter: Filter,
    /// The numbers of the deliveries that match the filter, ascending.
    shown: VecDeque<u64>,
    selected: Option<u64>,
    /// Whether the newest is selected whenever a delivery arrives.
    follows: bool,
    top: usize,
    height: usize,
}

impl List {
    /// Keeps at most this number of deliveries, and at least one.
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            items: VecDeque::new(),
            keep: keep.max(1),
            most_bytes: MAX_BYTES,
            bytes: 0,
            received: 0,
            evicted: 0,
            filter: Filter::default(),
            shown: VecDeque::new(),
            selected: None,
            follows: true,
            top: 0,
            height: 1,
        }
    }

    /// A delivery was answered.
    pub(crate) fn push(&mut self, delivery: LoggedDelivery) {
        self.received += 1;
        let item = Item::new(self.received, delivery);
        self.bytes += item.bytes();
        if self.filter.takes(&item) {
            self.shown.push_back(item.number);
        }
        self.items.push_back(item);
        while self.items.len() > self.keep || (self.bytes > self.most_bytes && self.items.len() > 1)
        {
            self.evict_oldest();
        }
        if self.follows {
            self.selected = self.shown.back().copied();
        }
        self.settle();
    }

    fn evict_oldest(&mut self) {
        if let Some(oldest) = self.items.pop_front() {
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
            self.evicted += 1;
            if self.shown.front() == Some(&oldest.number) {
                self.shown.pop_front();
                // The rows above have moved up by one.
                self.top = self.top.saturating_sub(1);
            }
        }
    }

    /// The deliveries that match the filter, the oldest first.
    pub(crate) fn shown(&self) -> impl DoubleEndedIterator<Item = &Item> + ExactSizeIterator {
        self.shown
            .iter()
            .map(|&number| &self.items[self.place(number)])
    }

    /// The number of kept deliveries, whether they match the filter or not.
    pub(crate) fn kept(&self) -> usize {
        self.items.len()
    }

    /// The cursor's place in the list.
    pub(crate) fn cursor(&self) -> Option<usize> {
        self.shown.binary_search(&self.selected?).ok()
    }

    pub(crate) fn selected(&self) -> Option<&Item> {
        self.cursor()
            .map(|at| &self.items[self.place(self.shown[at])])
    }

    /// The first visible row.
    pub(crate) fn top(&self) -> usize {
        self.top
    }

    /// Which of the items it is. Numbers have no gaps, so it is as far from the front as the front's number is lower.
    fn place(&self, number: u64) -> usize {
        let first = self.items.front().map_or(number, |item| item.number);
        usize::try_from(number - first).unwrap_or(usize::MAX)
    }

    /// The number of deliveries so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// The number of the oldest deliveries that are not kept any more.
    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    pub(crate) fn follows(&self) -> bool {
        self.follows
    }

    pub(crate) fn is_filtered(&self) -> bool {
        !self.filter.is_empty()
    }

    /// Sets the number of rows.
    pub(crate) fn lay_out(&mut self, height: usize) {
        self.height = height.max(1);
        self.settle();
    }

    /// The length of a page.
    pub(crate) fn page(&self) -> isize {
        isize::try_from(self.height).unwrap_or(isize::MAX)
    }

    /// Moves the cursor. At the end it follows new deliveries; anywhere else it stays with its delivery.
    pub(crate) fn move_by(&mut self, steps: isize) {
        let Some(last) = self.shown.len().checked_sub(1) else {
            return;
        };
        let at = self
            .cursor()
            .unwrap_or(last)
            .saturating_add_signed(steps)
            .min(last);
        self.selected = self.shown.get(at).copied();
        self.follows = at == last;
        self.settle();
    }

    /// Shows the deliveries that match this filter. The cursor goes to the delivery nearest to its old place.
    pub(crate) fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
        let taken = self.items.iter().filter(|item| self.filter.takes(item));
        self.shown = taken.map(|item| item.number).collect();
        if self.follows || self.cursor().is_none() {
            let wanted = self.selected.filter(|_| !self.follows);
            let next =
                wanted.and_then(|wanted| self.shown.iter().find(|&&number| number >= wanted));
            self.selected = next.or(self.shown.back()).copied();
        }
        self.settle();
    }

    /// Keeps the cursor on an existing, visible delivery.
    fn settle(&mut self) {
        if let (Some(selected), Some(&first)) = (self.selected, self.shown.front()) {
            self.selected = Some(selected.max(first));
        }
        if self.cursor().is_none() {
            self.selected = self.shown.back().copied();
        }
        let last_top = self.shown.len().saturating_sub(self.height);
        let cursor = self.cursor().unwrap_or_default();
        let least = (cursor + 1).saturating_sub(self.height);
        self.top = self.top.clamp(least, cursor.max(least)).min(last_top);
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{delivery, handled};
    use super::*;

    fn list(count: u64, height: usize) -> List {
        let mut list = List::new(100);
        list.lay_out(height);
        (1..=count).for_each(|number| list.push(handled(&format!("evt_{number}"))));
        list
    }

    fn cursor(list: &List) -> (u64, usize) {
        (list.selected().map_or(0, |item| item.number), list.top())
    }

    #[test]
    fn it_follows_the_newest_unless_the_cursor_was_moved_away() {
        let mut list = list(7, 3);
        assert_eq!((cursor(&list), list.follows()), ((7, 4), true));
        list.move_by(-1);
        list.push(handled("evt_8"));
        assert_eq!((cursor(&list), list.follows()), ((6, 4), false));
        list.move_by(-4);
        assert_eq!(cursor(&list), (2, 1));
        list.push(handled("evt_9"));
        assert_eq!(cursor(&list), (2, 1));
        list.move_by(isize::MAX);
        list.push(handled("evt_10"));
        assert_eq!((cursor(&list), list.follows()), ((10, 7), true));
        list.move_by(isize::MIN);
        assert_eq!(cursor(&list), (1, 0));
        list.move_by(list.page());
        assert_eq!(cursor(&list), (4, 1));
    }

    #[test]
    fn the_oldest_are_evicted_and_counted() {
        let mut list = List::new(3);
        list.lay_out(2);
        (1..=3).for_each(|_| list.push(handled("evt")));
        list.move_by(isize::MIN);
        (4..=8).for_each(|_| list.push(handled("evt")));
        assert_eq!((list.received(), list.kept(), list.evicted()), (8, 3, 5));
        // The cursor's own delivery was dropped, so it stands on the oldest that is left.
        assert_eq!(cursor(&list), (6, 0));
        let numbers: Vec<_> = list.shown().map(|item| item.number).collect();
        assert_eq!(numbers, [6, 7, 8]);
    }

    #[test]
    fn large_bodies_are_evicted_by_their_bytes() {
        let mut list = List::new(1_000);
        list.most_bytes = 10_000;
        let large = "x".repeat(4_000);
        (0..10).for_each(|_| list.push(delivery(&large, 401, "not_authentic")));
        assert_eq!((list.kept(), list.evicted()), (2, 8));
        assert!(list.bytes <= 10_000, "{}", list.bytes);
        list.push(delivery(&"x".repeat(20_000), 401, "not_authentic"));
        assert_eq!(list.kept(), 1, "the newest is kept whatever it takes");
    }

    #[test]
    fn a_filter_keeps_the_cursor_where_it_can() {
        let mut list = list(12, 4);
        list.move_by(-1);
        list.set_filter(Filter::parse("evt_1"));
        let numbers: Vec<_> = list.shown().map(|item| item.number).collect();
        assert_eq!((numbers, cursor(&list).0), (vec![1, 10, 11, 12], 11));
        list.move_by(isize::MIN);
        list.set_filter(Filter::parse("evt_5"));
        assert_eq!(cursor(&list), (5, 0));
        list.push(handled("evt_99"));
        assert_eq!(list.shown().len(), 1, "what comes is filtered as well");
        list.set_filter(Filter::parse("no such thing"));
        assert_eq!((list.shown().len(), list.selected().is_none()), (0, true));
        list.push(handled("evt_100"));
        list.set_filter(Filter::default());
        assert_eq!((list.shown().len(), list.kept()), (14, 14));
        assert!(list.selected().is_some());
    }
}
