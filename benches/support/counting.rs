//! An allocator that counts the requests of each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocations of this thread so far: their number, and their bytes. Freed memory is not
/// subtracted.
#[allow(dead_code)] // not every user asks for both
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Allocated {
    pub(crate) times: usize,
    pub(crate) bytes: usize,
}

pub(crate) fn allocated() -> Allocated {
    Allocated {
        times: TIMES.get(),
        bytes: BYTES.get(),
    }
}

/// Returns the bytes that were allocated on this thread and are not free yet. Wraps where another
/// thread frees them.
#[allow(dead_code)]
pub(crate) fn live_bytes() -> usize {
    LIVE.get()
}

thread_local! {
    // A count for each thread, since tests run side by side.
    static TIMES: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: usize) {
    TIMES.set(TIMES.get() + 1);
    BYTES.set(BYTES.get() + bytes);
    LIVE.set(LIVE.get().wrapping_add(bytes));
}

// SAFETY: every call is passed on unchanged to the system's allocator; the counts are plain numbers
// that need neither an allocation nor a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from the system's
        // allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        LIVE.set(LIVE.get().wrapping_sub(layout.size()));
        // SAFETY: the caller keeps `realloc`'s contract, and `pointer` came from the system's
        // allocator.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
