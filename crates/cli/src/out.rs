//! Standard output: text for people, JSON for programs.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::builder::styling::Style;
use serde::Serialize;

use crate::fault::{Class, Fault};
use crate::printable::{has_control_characters, printable_json};

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

    /// The text in this style on a terminal, unless NO_COLOR is set.
    pub(crate) fn painted(&self, text: &str, style: Style) -> String {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        if text.is_empty() || !self.is_terminal() || is_dumb || is_plain {
            return text.to_owned();
        }
        format!("{style}{text}{style:#}")
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
        self.line(&printable_json(&serde_json::to_string(value)?))
    }

    /// Prints bytes from others unchanged; but not to a terminal that would act on them.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        if self.is_terminal() && has_control_characters(bytes) {
            let message = "the body has bytes that a terminal acts on, or that are not text";
            return Err(Fault::new(Class::Input, message)
                .advise("write it to a file, > body, or look at it as hex: | xxd"));
        }
        Ok(self.bytes(bytes)?)
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// To be called behind each line that someone may be waiting for.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }
}
