//! The terminal: taken over for a while, and restored whatever the end is.

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
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use crate::panics;

/// The screen that is drawn on. Dropping it gives the terminal back.
pub(crate) struct Screen {
    pub(crate) terminal: Terminal<CrosstermBackend<Stdout>>,
    /// The messages of panics on other threads, kept until they can be read.
    panic_messages: Arc<Mutex<Vec<String>>>,
    is_taken: Arc<AtomicBool>,
}

impl Screen {
    pub(crate) fn take() -> io::Result<Self> {
        let screen = Self {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
            panic_messages: Arc::default(),
            is_taken: Arc::default(),
        };
        screen.guard_against_panics();
        // The guard exists before anything is changed, so that a failure half-way is undone.
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

    /// Lends the terminal to another program, and takes it again.
    pub(crate) fn lend(&mut self, meanwhile: impl FnOnce()) -> io::Result<()> {
        self.leave();
        meanwhile();
        self.enter()?;
        // A new one draws everything again. Clearing the old one would ask the terminal where its cursor is, and wait for the
        // answer.
        self.terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        execute!(io::stdout(), Clear(ClearType::All))
    }

    /// Whether a task has panicked.
    pub(crate) fn has_panicked(&self) -> bool {
        !self
            .panic_messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// A panic on this thread gives the terminal back before its message is printed. One on another thread leaves the screen
    /// alone, and its message waits.
    fn guard_against_panics(&self) {
        let (panic_messages, is_taken) =
            (Arc::clone(&self.panic_messages), Arc::clone(&self.is_taken));
        let drawing = thread::current().id();
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if thread::current().id() == drawing {
                if is_taken.swap(false, Ordering::SeqCst) {
                    give_back();
                }
                before(info);
            } else if is_taken.load(Ordering::SeqCst) {
                panic_messages
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(panics::request(info));
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
            .panic_messages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .drain(..)
        {
            let _ = io::stderr().write_all(message.as_bytes());
        }
    }
}

/// Each step is tried, whether the one before failed or not: a terminal that is gone has nothing to lose.
fn give_back() {
    let _ = disable_raw_mode();
    let _ = execute!(
        io::stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::io::Read as _;

    use pty_process::blocking::{Command, open};
    use rustix::termios::{LocalModes, tcgetattr};

    use super::*;

    /// Not a test of its own: the tests below start it in a terminal.
    #[test]
    #[ignore = "panics on purpose, for the tests beside it"]
    fn panics_while_it_draws() {
        let _screen = Screen::take().unwrap();
        panic!("on purpose");
    }

    #[test]
    #[ignore = "panics on purpose, for the tests beside it"]
    fn panics_beside_it() {
        let mut screen = Screen::take().unwrap();
        assert!(
            thread::spawn(|| panic!("whsec_made_up_and_quoted"))
                .join()
                .is_err()
        );
        assert!(screen.has_panicked());
        screen.lend(|| {}).unwrap();
    }

    /// Everything that was written to the terminal, and whether its settings are as a shell expects them.
    fn in_a_terminal(name: &str) -> (String, bool) {
        let (mut pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(24, 80)).unwrap();
        let arguments = ["--ignored", "--exact", "--nocapture"];
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .arg(format!("listen::terminal::tests::{name}"))
            // The output of the test harness itself is not checked.
            .env("RUST_BACKTRACE", "0")
            .spawn(pts)
            .unwrap();
        let mut written = Vec::new();
        // The end of a terminal is an error.
        let _ = pty.read_to_end(&mut written);
        child.wait().unwrap();
        let modes = tcgetattr(&pty).unwrap().local_modes;
        let is_cooked = modes.contains(LocalModes::ICANON | LocalModes::ECHO);
        (String::from_utf8_lossy(&written).into_owned(), is_cooked)
    }

    #[test]
    fn a_panic_restores_the_terminal_before_it_is_reported() {
        let (written, is_cooked) = in_a_terminal("panics_while_it_draws");
        let left = written
            .find("\x1b[?1049l")
            .expect("the other screen was left");
        assert!(written.contains("\x1b[?1049h") && written.contains("\x1b[?25h"));
        assert!(written.find("on purpose").unwrap() > left, "{written:?}");
        assert!(is_cooked);
    }

    #[test]
    fn a_panic_on_another_thread_is_reported_at_the_end_and_quotes_nothing() {
        let (written, is_cooked) = in_a_terminal("panics_beside_it");
        let left = written
            .rfind("\x1b[?1049l")
            .expect("the other screen was left");
        let told = written
            .find("a bug of hookgate")
            .expect("the panic was told");
        assert!(told > left && !written.contains("whsec_"), "{written:?}");
        assert!(is_cooked);
    }
}
