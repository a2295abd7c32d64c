//! The bytes of a body that arrives in more than one piece, in a buffer that a budget can free.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::sync::{Mutex, lock};

/// The buffer of one body, shared by its reader and, in the layer, by the budget that bounds all bodies under way.
///
/// It holds every byte that was added, or none: once it was [freed](Self::free), it returns no bytes, so a proof never covers
/// only a part of a body.
#[derive(Clone, Default)]
pub(crate) struct SharedBuffer(Arc<Mutex<BodyBuffer>>);

#[derive(Default)]
struct BodyBuffer {
    bytes: Vec<u8>,
    freed: bool,
    /// The waker of the reader, while it waits for the next piece.
    waker: Option<Waker>,
}

/// Returns the size of the buffer for `length` bytes of a body of at most `limit`. Sizes are powers of two, so that a body in
/// many pieces is seldom copied, but no more than the limit.
pub(crate) fn room_for(length: usize, limit: usize) -> usize {
    let room = length.checked_next_power_of_two().unwrap_or(limit);
    room.max(LEAST_ROOM).min(limit).max(length)
}

const LEAST_ROOM: usize = 1 << 10;

impl SharedBuffer {
    /// Adds a piece. Does nothing once the buffer was freed.
    pub(crate) fn add(&self, piece: &[u8], limit: usize) {
        let mut state = lock(&self.0);
        if state.freed {
            return;
        }
        let (length, taken) = (state.bytes.len() + piece.len(), state.bytes.len());
        if length > state.bytes.capacity() {
            let room = room_for(length, limit);
            state.bytes.reserve_exact(room - taken);
        }
        state.bytes.extend_from_slice(piece);
    }

    /// Returns the bytes, in an allocation of their length. `None` once the buffer was freed.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.0);
        if state.freed {
            return None;
        }
        state.freed = true;
        let mut bytes = std::mem::take(&mut state.bytes);
        drop(state);
        bytes.shrink_to_fit();
        Some(bytes)
    }

    /// Frees the bytes at once and wakes the reader.
    pub(crate) fn free(&self) {
        let mut state = lock(&self.0);
        state.freed = true;
        let (bytes, waker) = (std::mem::take(&mut state.bytes), state.waker.take());
        drop(state);
        drop(bytes);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Ready once the buffer was freed.
    pub(crate) fn poll_freed(&self, context: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.freed {
            return Poll::Ready(());
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}
