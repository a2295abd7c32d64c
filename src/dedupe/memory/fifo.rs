//! A queue in pieces of a fixed size.

use std::collections::VecDeque;

/// Values that enter at the end and leave at the front, each with a number: the first one ever has the number 0.
///
/// A `VecDeque` doubles its buffer and copies all values: that takes milliseconds where there are millions, and half of the buffer
/// may stay empty. Here one piece of `PIECE` values is added or freed at a time, and values never move.
pub(super) struct Fifo<T, const PIECE: usize> {
    pieces: VecDeque<Box<[T; PIECE]>>,
    /// The number of the value at the front.
    first: u64,
    /// The number of the next value.
    end: u64,
}

impl<T, const PIECE: usize> Default for Fifo<T, PIECE> {
    fn default() -> Self {
        Self {
            pieces: VecDeque::new(),
            first: 0,
            end: 0,
        }
    }
}

impl<T: Copy + Default, const PIECE: usize> Fifo<T, PIECE> {
    const SIZE: u64 = PIECE as u64;

    pub(super) fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first == self.end
    }

    pub(super) fn push(&mut self, value: T) {
        let (piece, at) = self.piece_and_offset(self.end);
        if piece == self.pieces.len() {
            self.pieces.push_back(Box::new([T::default(); PIECE]));
        }
        self.pieces[piece][at] = value;
        self.end += 1;
    }

    pub(super) fn get(&self, number: u64) -> Option<T> {
        if number < self.first || number >= self.end {
            return None;
        }
        let (piece, at) = self.piece_and_offset(number);
        Some(self.pieces[piece][at])
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let value = self.get(self.first)?;
        self.first += 1;
        if self.first.is_multiple_of(Self::SIZE) {
            self.pieces.pop_front();
        }
        Some(value)
    }

    #[allow(clippy::cast_possible_truncation)] // both are indices of values in memory
    fn piece_and_offset(&self, number: u64) -> (usize, usize) {
        let piece = number / Self::SIZE - self.first / Self::SIZE;
        (piece as usize, (number % Self::SIZE) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_leave_in_the_order_in_which_they_entered_and_are_found_by_their_numbers() {
        let mut fifo = Fifo::<u64, 4>::default();
        let mut model = VecDeque::new();
        for round in 0..200_u64 {
            for value in 0..round % 7 {
                fifo.push(round * 10 + value);
                model.push_back(round * 10 + value);
            }
            for _ in 0..round % 6 {
                assert_eq!(fifo.pop(), model.pop_front());
            }
            let found: Vec<_> = (fifo.first()..fifo.end())
                .map(|number| fifo.get(number))
                .collect();
            assert!(found.iter().copied().eq(model.iter().copied().map(Some)));
            assert_eq!(fifo.is_empty(), model.is_empty());
            assert!(fifo.get(fifo.end()).is_none());
            assert!(
                fifo.first()
                    .checked_sub(1)
                    .is_none_or(|gone| fifo.get(gone).is_none())
            );
            // A part of the first and of the last piece may be unused.
            assert!(fifo.pieces.len() <= model.len() / 4 + 2);
        }
    }
}
