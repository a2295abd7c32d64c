//! The terminal: taken over for a while, and given back whole however that ends.

use std::io::{self, Stdout, Write as _};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// The screen that is drawn on. Dropping it gives the terminal back.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
    /// What a panic on another thread has said, kept until it can be read.
    said: Arc<Mutex<Vec<String>>>,
    is_taken: Arc<AtomicBool>,
}

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        let screen = Self {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
            said: Arc::default(),
            is_taken: Arc::default(),
        };
        screen.guard_against_panics();
        // The guard is there before anything is changed, so that what fails half-way is undone.
        screen.enter()?;
        Ok(screen)
    }

    fn enter(&self) -> io::Result<()> {
        self.is_taken.store(true, Ordering::SeqCst);
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
    }

    fn leave(&self) {
        if self.is_taken.swap(false, Ordering::SeqCst) {
            give_back();
        }
    }

    /// Lets somebody else have the terminal, and takes it again.
    pub(crate) fn lend(&mut self, meanwhile: impl FnOnce()) -> io::Result<()> {
        self.leave();
        meanwhile();
        self.enter()?;
        self.terminal.clear()
    }

    /// Whether a task has panicked.
    pub(crate) fn is_cracked(&self) -> bool {
        !self
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// A panic on this thread gives the terminal back before its message is printed. One on another thread leaves the screen alone,
    /// and its message waits.
    fn guard_against_panics(&self) {
        let (said, is_taken) = (Arc::clone(&self.said), Arc::clone(&self.is_taken));
        let drawing = thread::current().id();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawing {
                if is_taken.swap(false, Ordering::SeqCst) {
                    give_back();
                }
                before(info);
            } else if is_taken.load(Ordering::SeqCst) {
                said.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(info.to_string());
            } else {
                before(info);
            }
        }));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
        for message in self
            .said
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }
}

/// Each step is tried, whatever became of the one before: a terminal that is gone has nothing to lose.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
}
