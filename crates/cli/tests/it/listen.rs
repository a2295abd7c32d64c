//! `hookgate listen`, as a process of its own: over pipes, and in a terminal.

mod piped;
#[cfg(unix)]
mod seen;
