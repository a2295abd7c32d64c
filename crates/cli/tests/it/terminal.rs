//! A terminal for the tests: a real pty with the command in it, and the screen that a user would
//! see.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{LocalModes, tcgetattr};

/// A generous time limit, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    pty: Pty,
    child: Child,
    parser: vt100::Parser<Heard>,
    /// All that it has written.
    pub(crate) bytes: usize,
    ended: Option<ExitStatus>,
}

/// The escape sequences that a terminal gets, besides the text that it shows.
#[derive(Default)]
pub(crate) struct Heard {
    /// In base64, the last one last.
    pub(crate) clipboard: Vec<String>,
    pub(crate) titles: usize,
}

impl vt100::Callbacks for Heard {
    fn copy_to_clipboard(&mut self, _: &mut vt100::Screen, _: &[u8], data: &[u8]) {
        self.clipboard
            .push(String::from_utf8(data.to_vec()).unwrap());
    }

    fn set_window_title(&mut self, _: &mut vt100::Screen, _: &[u8]) {
        self.titles += 1;
    }
}

impl Terminal {
    /// Starts `hookgate` with these arguments in a terminal of this size. The environment has
    /// nothing but the given variables, and the path to programs.
    pub(crate) fn start(
        arguments: &[&str],
        variables: &[(&str, &str)],
        (rows, columns): (u16, u16),
    ) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        Self::start_in(folder, arguments, variables, (rows, columns))
    }

    /// The same in this directory.
    pub(crate) fn start_in(
        folder: &Path,
        arguments: &[&str],
        variables: &[(&str, &str)],
        (rows, columns): (u16, u16),
    ) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_hookgate"))
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("TERM", "xterm-256color")
            .envs(variables.iter().copied())
            .current_dir(folder)
            .spawn(pts)
            .unwrap();
        Self {
            pty,
            child,
            parser: vt100::Parser::new_with_callbacks(rows, columns, 0, Heard::default()),
            bytes: 0,
            ended: None,
        }
    }

    pub(crate) fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    pub(crate) fn heard(&self) -> &Heard {
        self.parser.callbacks()
    }

    /// The text on the screen, a line for each row.
    pub(crate) fn text(&self) -> String {
        self.screen().contents()
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen shows all of these texts, and returns the text of the screen.
    pub(crate) fn shows(&mut self, texts: &[&str]) -> String {
        self.until(&format!("{texts:?}"), |terminal| {
            let text = terminal.text();
            texts.iter().all(|wanted| text.contains(wanted))
        });
        self.text()
    }

    /// Waits until the condition holds.
    pub(crate) fn until(&mut self, what: &str, so: impl Fn(&Self) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !so(self) {
            let is_open = self.read(until);
            assert!(
                is_open || so(self),
                "it ended before {what}:\n{}",
                self.text()
            );
            assert!(
                Instant::now() < until,
                "never came: {what}\n{}",
                self.text()
            );
        }
    }

    /// Reads the program's output; returns `false` once the program can write no more.
    fn read(&mut self, until: Instant) -> bool {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut waited = [PollFd::from_borrowed_fd(self.pty.as_fd(), PollFlags::IN)];
        poll(&mut waited, Some(&timeout)).unwrap();
        if waited[0].revents().is_empty() {
            return true;
        }
        let mut bytes = [0; 16_384];
        match self.pty.read(&mut bytes) {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.bytes += read;
                self.parser.process(&bytes[..read]);
                true
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Whether keys are echoed and lines edited, as a shell expects to find it.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.pty).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for its end. Returns its exit status.
    pub(crate) fn end(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        while self.read(until) {
            assert!(Instant::now() < until, "it goes on:\n{}", self.text());
        }
        let status = self.child.wait().unwrap();
        self.ended = Some(status);
        status
    }

    /// No trace of the interactive screen is left: neither its picture, nor its keyboard mode, nor
    /// its hidden cursor.
    pub(crate) fn assert_whole(&self) {
        let screen = self.screen();
        assert!(!screen.alternate_screen(), "still on the other screen");
        assert!(!screen.hide_cursor(), "the cursor is still hidden");
        assert!(!screen.bracketed_paste(), "pastes are still bracketed");
        assert!(self.is_cooked(), "the terminal is still raw");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
