//! One line of progress on standard error, where that is a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::out::Out;

/// So often at most: a terminal shows no more, and each time costs a call of the system.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
pub(crate) struct Progress {
    is_shown: bool,
    next: Arc<Mutex<Instant>>,
}

impl Progress {
    pub(crate) fn new(out: &Out) -> Self {
        Self {
            is_shown: !out.is_json() && io::stderr().is_terminal(),
            next: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Shows the text in place of the one before.
    pub(crate) fn show(&self, text: &str) {
        let now = Instant::now();
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if now >= *next {
            *next = now + PAUSE;
            self.write(text);
        }
    }

    /// Makes room for other lines.
    pub(crate) fn clear(&self) {
        self.write("");
    }

    fn write(&self, text: &str) {
        if self.is_shown {
            // Progress that can't be shown is not worth an error. The codes go to the beginning of the line and delete it.
            let _ = io::stderr().write_all(format!("\r\x1b[2K{text}").as_bytes());
        }
    }
}
