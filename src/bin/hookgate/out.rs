//! Standard output: text for people, JSON for programs.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use serde::Serialize;

pub(crate) struct Out {
    json: bool,
    stdout: BufWriter<Stdout>,
}

impl Out {
    pub(crate) fn new(json: bool) -> Self {
        Self {
            json,
            stdout: BufWriter::new(io::stdout()),
        }
    }

    /// Whether JSON is asked for.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person looks at it.
    pub(crate) fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// The text, or the value as a line of JSON, whichever is asked for.
    pub(crate) fn say(&mut self, text: &str, value: &impl Serialize) -> io::Result<()> {
        if self.json {
            return self.json_line(value);
        }
        self.line(text)
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.stdout, value)?;
        self.stdout.write_all(b"\n")
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// To be called behind each line that someone may be waiting for.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
