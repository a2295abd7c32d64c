//! The way through a list by offsets, while the list changes.

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use hookgate::event::RowId;

/// The order of one pass's requests.
///
/// Each page begins some rows before the end of the last one. Rows that were deleted meanwhile move
/// all later ones forward; then the page does not begin with the last one's end, and rows may lie
/// between them: the scan steps back until it meets rows that it has seen.
pub(super) struct Scan {
    page_rows: u64,
    overlap: u64,
    offset: u64,
    pages: u64,
    /// The end of the last page that was connected to the ones before it.
    tail: Vec<u64>,
    /// The rows of all connected pages.
    seen: HashSet<u64>,
    is_stepping_back: bool,
    /// Connected pages in a row that had no new row.
    repeated: u32,
    /// The most rows of a page so far.
    most: u64,
}

/// So many pages without a new row are not a coincidence: the offset has no effect.
const REPEATED: u32 = 4;

/// The next step of a scan.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Page,
    /// The end of the list. Incomplete where the pages could not be connected.
    End {
        is_complete: bool,
    },
}

impl Scan {
    pub(super) fn new(page_rows: u64, overlap: u64, offset: u64) -> Self {
        let page_rows = page_rows.max(2);
        Self {
            page_rows,
            overlap: overlap.clamp(1, page_rows / 2),
            offset,
            pages: 0,
            tail: Vec::new(),
            seen: HashSet::new(),
            is_stepping_back: false,
            repeated: 0,
            most: 0,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn limit(&self) -> u64 {
        self.page_rows
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// The number of different rows.
    pub(super) fn rows(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Takes a page's rows in their order, and the number of rows that the list has now, where it
    /// says it. A page may have fewer rows than were asked for.
    pub(super) fn page(&mut self, rows: &[RowId], total: Option<u64>) -> Next {
        let rows: Vec<u64> = rows.iter().map(digest).collect();
        let count = rows.len() as u64;
        self.pages += 1;
        let overlap = self.overlap.min((count / 2).max(1));
        let step = count.saturating_sub(overlap).max(1);
        let is_connected = self.offset == 0 || self.pages == 1 || self.is_connected(&rows);
        if self.pages > 3 * (total.unwrap_or(self.offset) / step + 1) + 20 {
            return Next::End { is_complete: false };
        }
        if !is_connected {
            self.is_stepping_back = true;
            self.offset = self.offset.saturating_sub(self.page_rows - self.overlap);
            return Next::Page;
        }
        self.is_stepping_back = false;
        let known = self.seen.len();
        self.seen.extend(&rows);
        self.repeated = match self.seen.len() > known {
            true => 0,
            false => self.repeated + 1,
        };
        let end = self.offset + count;
        if total.is_some_and(|total| end > total.max(self.offset)) {
            // More rows than the list says that it has: its number is wrong, or the offset has no
            // effect.
            return Next::End { is_complete: false };
        }
        if count == 0 && !self.seen.is_empty() {
            // Pages overlap, so the last one has rows too.
            return Next::End { is_complete: false };
        }
        // A total that ends with a full page may be the most that the service counts, so another
        // page is asked for.
        let is_tail_alone = self.repeated > 0 && count <= self.tail.len() as u64;
        let is_short = count < self.most || count == 0 || is_tail_alone;
        if is_short && total.is_none_or(|total| end >= total) {
            return Next::End { is_complete: true };
        }
        self.most = self.most.max(count);
        if count == 0 || self.repeated >= REPEATED {
            // The list says that it goes on, and gives no more rows.
            return Next::End { is_complete: false };
        }
        let tail = usize::try_from(count.saturating_sub(overlap)).unwrap_or_default();
        self.tail = rows.get(tail..).unwrap_or_default().to_vec();
        self.offset = end.saturating_sub(overlap);
        Next::Page
    }

    /// One row of the tail may have moved there alone, so half of it must be seen again.
    fn is_connected(&self, rows: &[u64]) -> bool {
        if self.is_stepping_back {
            let seen = rows.iter().filter(|row| self.seen.contains(row)).count();
            return seen * 2 >= self.tail.len().min(rows.len()) && seen > 0;
        }
        let seen = self.tail.iter().filter(|row| rows.contains(row)).count();
        self.tail.is_empty() || seen * 2 >= self.tail.len()
    }
}

fn digest(row: &RowId) -> u64 {
    let mut hasher = DefaultHasher::new();
    row.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(range: impl IntoIterator<Item = u64>) -> Vec<RowId> {
        range
            .into_iter()
            .map(|n| RowId::from(format!("row_{n}")))
            .collect()
    }

    #[test]
    fn a_still_list_is_read_by_475_with_25_rows_twice() {
        let mut scan = Scan::new(500, 25, 0);
        let mut offsets = vec![];
        loop {
            let from = scan.offset();
            offsets.push(from);
            if scan.page(&rows(from..(from + 500).min(1_400)), Some(1_400)) != Next::Page {
                break;
            }
        }
        assert_eq!(offsets, [0, 475, 950]);
        assert_eq!(scan.rows(), 1_400);
    }

    /// The offsets of a scan of a list of so many rows, and its end.
    fn scanned(count: u64, total: impl Fn(u64) -> Option<u64>) -> (Vec<u64>, Next) {
        let offsets = std::cell::RefCell::new(vec![]);
        let end = ended(|_, from| {
            offsets.borrow_mut().push(from);
            let listed = rows(from.min(count)..(from + 500).min(count));
            (listed, total(count))
        });
        (offsets.into_inner(), end)
    }

    // fault M2: a list of three rows, or a service that gives small pages and no total, ends after its first page or never
    #[test]
    fn a_list_that_ends_with_a_full_page_is_complete_after_the_next_one() {
        let totals: [fn(u64) -> Option<u64>; 2] = [Some, |_| None];
        for total in totals {
            for (count, asked) in [
                (0, vec![0]),
                (1, vec![0, 0]),
                (2, vec![0, 1]),
                (3, vec![0, 2]),
                (30, vec![0, 15]),
                (499, vec![0, 474]),
                (500, vec![0, 475]),
                (501, vec![0, 475]),
                (1_450, vec![0, 475, 950, 1_425]),
            ] {
                let complete = Next::End { is_complete: true };
                assert_eq!(scanned(count, total), (asked, complete));
            }
        }
    }

    // fault M1: a list's number of rows is capped at the end of a page: the rows after it look deleted
    #[test]
    fn a_total_that_is_capped_at_the_end_of_a_page_ends_incomplete() {
        for cap in [500, 975, 1_450] {
            for count in [cap + 1, cap + 24, cap + 400, 100_000] {
                let (_, end) = scanned(count, |count| Some(count.min(cap)));
                assert_eq!(end, Next::End { is_complete: false }, "{cap} of {count}");
            }
        }
    }

    #[test]
    fn six_hundred_deletions_between_two_pages_skip_no_row() {
        let mut list: Vec<u64> = (0..3_000).collect();
        let mut scan = Scan::new(500, 25, 0);
        let mut seen = HashSet::new();
        let mut offsets = vec![];
        loop {
            let from = usize::try_from(scan.offset()).unwrap();
            offsets.push(from);
            let page = &list[from.min(list.len())..(from + 500).min(list.len())];
            seen.extend(page.iter().copied());
            if scan.page(&rows(page.iter().copied()), Some(list.len() as u64)) != Next::Page {
                break;
            }
            if offsets.len() == 3 {
                list.drain(700..1_300);
            }
        }
        assert!(list.iter().all(|row| seen.contains(row)));
        assert_eq!(offsets[3..5], [1_425, 950], "{offsets:?}");
    }

    /// The end of a scan of these pages, by their numbers and offsets.
    fn ended(page: impl Fn(u64, u64) -> (Vec<RowId>, Option<u64>)) -> Next {
        let mut scan = Scan::new(500, 25, 0);
        for number in 0..1_000 {
            let (rows, total) = page(number, scan.offset());
            match scan.page(&rows, total) {
                Next::Page => {}
                end => return end,
            }
        }
        panic!("the scan does not end");
    }

    #[test]
    fn a_list_that_ignores_the_offset_ends_incomplete() {
        let incomplete = Next::End { is_complete: false };
        for total in [None, Some(540), Some(5_000), Some(100_000)] {
            assert_eq!(ended(|_, _| (rows(0..500), total)), incomplete, "{total:?}");
        }
    }

    #[test]
    fn a_number_of_rows_below_those_that_were_listed_ends_incomplete() {
        let of = |total| ended(move |_, from| (rows(from..(from + 500).min(1_400)), Some(total)));
        assert_eq!(of(1_400), Next::End { is_complete: true });
        for wrong in [0, 1, 499, 900, 1_399] {
            assert_eq!(of(wrong), Next::End { is_complete: false }, "{wrong}");
        }
    }

    #[test]
    fn an_empty_page_in_the_middle_ends_incomplete_or_is_read_again() {
        for total in [None, Some(1_400)] {
            let page = |number, from: u64, is_broken: fn(u64) -> bool| {
                let end = if is_broken(number) {
                    from
                } else {
                    (from + 500).min(1_400)
                };
                (rows(from..end), total)
            };
            let once = ended(|number, from| page(number, from, |number| number == 1));
            assert_eq!(once, Next::End { is_complete: true });
            let always = ended(|number, from| page(number, from, |number| number > 0));
            assert_eq!(always, Next::End { is_complete: false });
        }
    }

    #[test]
    fn a_list_without_order_ends_incomplete() {
        let mut scan = Scan::new(10, 2, 0);
        let mut requests = 0;
        let ended = loop {
            requests += 1;
            let next = scan.page(&rows(requests * 100..requests * 100 + 10), Some(100));
            if next != Next::Page {
                break next;
            }
        };
        assert_eq!(ended, Next::End { is_complete: false });
        assert!(requests <= 60, "{requests}");
    }

    #[test]
    fn a_list_that_promises_more_rows_than_it_gives_ends_incomplete() {
        let mut scan = Scan::new(10, 2, 0);
        assert_eq!(scan.page(&[], Some(5)), Next::End { is_complete: false });
        let mut scan = Scan::new(10, 2, 0);
        assert_eq!(scan.page(&[], Some(0)), Next::End { is_complete: true });
    }

    #[test]
    fn a_list_that_became_shorter_than_the_offset_is_met_again_in_one_step() {
        let mut scan = Scan::new(500, 25, 0);
        assert_eq!(scan.page(&rows(0..500), Some(1_000)), Next::Page);
        assert_eq!(scan.page(&rows(475..975), Some(1_000)), Next::Page);
        assert_eq!(
            (scan.offset(), scan.page(&[], Some(900))),
            (950, Next::Page)
        );
        assert_eq!(scan.offset(), 475);
        assert_eq!(
            scan.page(&rows(500..900), Some(875)),
            Next::End { is_complete: true }
        );
    }

    #[test]
    fn a_service_with_smaller_pages_is_followed() {
        let mut scan = Scan::new(500, 25, 0);
        assert_eq!(scan.page(&rows(0..100), Some(150)), Next::Page);
        assert_eq!(scan.offset(), 75);
        assert_eq!(
            scan.page(&rows(75..150), Some(150)),
            Next::End { is_complete: true }
        );
    }
}
