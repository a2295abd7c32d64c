//! The address and the key.

use std::path::{Path, PathBuf};

use hookgate_client::{ApiKey, Client};
use http::Uri;
use zeroize::Zeroizing;

use super::fault::fault;
use crate::fault::{Class, Fault};
use crate::secrets::configured;

const URL: &str = "HOOKGATE_API_URL";
const KEY: &str = "HOOKGATE_API_KEY";
const WHOLE: &str =
    "write the whole address, whose path ends in /api/v1: https://service.example/api/v1";

/// Where the API is, and where its key comes from.
#[derive(clap::Args)]
#[command(next_help_heading = "API")]
pub(crate) struct ConnectArgs {
    /// The address of the API, whose path ends in /api/v1 [default: HOOKGATE_API_URL]
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Read the API key from this environment variable [default: HOOKGATE_API_KEY]
    #[arg(long, value_name = "VARIABLE", conflicts_with = "key_file")]
    key_env: Option<String>,
    /// Read the API key from this file, whose line break at the end is not part of it
    #[arg(long, value_name = "PATH")]
    key_file: Option<PathBuf>,
}

impl ConnectArgs {
    pub(crate) fn client(&self) -> Result<Client, Fault> {
        let given = self.url.clone().or_else(|| std::env::var(URL).ok());
        let url = given.ok_or_else(|| {
            Fault::new(Class::Usage, "the address of the API is not given")
                .advise(format!("set {URL}, or use --url"))
        })?;
        if url.parse::<Uri>().is_ok_and(|url| url.path() == "/") {
            let message = "the address of the API has no path";
            return Err(Fault::new(Class::Usage, message).advise(WHOLE));
        }
        let key = match (&self.key_env, &self.key_file) {
            (_, Some(path)) => of_file(path)?,
            (name, None) => {
                ApiKey::from_env(name.as_deref().unwrap_or(KEY)).map_err(|error| fault(&error))?
            }
        };
        Client::new(&url, key).map_err(|error| fault(&error))
    }
}

fn of_file(path: &Path) -> Result<ApiKey, Fault> {
    let wrong = |why: &str| {
        let message = format!("the API key in {} can't be right: {why}", path.display());
        Fault::new(Class::Secret, message).advise("give the file that holds the key alone")
    };
    let found = configured(&[], &[path.to_owned()])?.pop();
    let bytes = found.map(|(_, bytes)| bytes).unwrap_or_default();
    let text = std::str::from_utf8(&bytes).map_err(|_| wrong("it is not UTF-8"))?;
    let text = Zeroizing::new(text.to_owned());
    ApiKey::new(&text).map_err(|error| wrong(error.message()))
}
