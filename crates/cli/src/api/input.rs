//! JSON for a request, from standard input or a file.

use std::io::Read as _;
use std::path::PathBuf;

use serde_json::value::RawValue;

use crate::delivery_input::bytes_of;
use crate::fault::{Class, Fault};

/// Far more than a request needs.
const LONGEST: u64 = 64 << 20;

/// The JSON of a request.
#[derive(clap::Args)]
pub(crate) struct InputArg {
    /// Read the JSON from this file, in place of standard input
    #[arg(long, value_name = "PATH")]
    from: Option<PathBuf>,
}

impl InputArg {
    /// Returns the JSON as it was written, so that numbers keep their digits.
    #[expect(clippy::disallowed_methods, reason = "only a raw text is made of it")]
    pub(crate) fn json(&self) -> Result<Box<RawValue>, Fault> {
        let (name, bytes) = match &self.from {
            Some(path) => (path.display().to_string(), bytes_of("the JSON", path)?),
            None => ("standard input".to_owned(), standard_input()?),
        };
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!(
                "{name} is not JSON, at line {} column {}",
                error.line(),
                error.column()
            );
            Fault::new(Class::Input, message)
                .advise("a row is an object of values by property: {\"Customer\": \"Ada\"}")
        })
    }
}

fn standard_input() -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let read = std::io::stdin()
        .lock()
        .take(LONGEST)
        .read_to_end(&mut bytes);
    read.map_err(|error| Fault::caused_by(Class::Input, "standard input can't be read", &error))?;
    Ok(bytes)
}
