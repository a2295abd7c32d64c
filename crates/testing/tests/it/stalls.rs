//! Whether the machine was too busy for a test that needs real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often such a test is repeated at most.
pub(crate) const ATTEMPTS: u32 = 20;

/// The longest time by which a thread that wants to wake each 5 ms has overslept.
pub(crate) struct Stalls {
    over: Arc<AtomicBool>,
    watcher: JoinHandle<Duration>,
}

impl Stalls {
    pub(crate) fn watch() -> Self {
        const NAP: Duration = Duration::from_millis(5);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let watcher = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !is_over.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                thread::sleep(NAP);
                longest = longest.max(asleep.elapsed().saturating_sub(NAP));
            }
            longest
        });
        Self { over, watcher }
    }

    pub(crate) fn longest(self) -> Duration {
        self.over.store(true, Ordering::Relaxed);
        self.watcher.join().unwrap()
    }
}
