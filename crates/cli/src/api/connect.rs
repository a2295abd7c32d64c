//! The address and the key of the API, and its errors with their exit codes.

use std::path::{Path, PathBuf};

use hookgate_client::{ApiKey, Client, Error, ErrorKind};
use http::Uri;
use zeroize::Zeroizing;

use crate::fault::{Class, Fault, chain};
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

/// The fault of a request, with its exit code.
pub(crate) fn fault(error: &Error) -> Fault {
    let class = match error.kind() {
        ErrorKind::Key | ErrorKind::Unauthorized | ErrorKind::Forbidden => Class::Secret,
        ErrorKind::Config => Class::Usage,
        ErrorKind::Connection | ErrorKind::Timeout | ErrorKind::RateLimited | ErrorKind::Server => {
            Class::Network
        }
        _ => Class::Input,
    };
    let advice = match error.kind() {
        _ if error.is_outcome_unknown() => "look whether the change was made before you repeat it",
        ErrorKind::Key => "set HOOKGATE_API_KEY, or use --key-env or --key-file",
        ErrorKind::Unauthorized => "is the key of this workspace, not expired and not disabled?",
        ErrorKind::Forbidden => "use a key with this scope",
        ErrorKind::NotFound => {
            "check the id, and that the address ends in /api/v1; hookgate api list models shows the data models, and so for rows, blocks, workflows and stats"
        }
        ErrorKind::Connection | ErrorKind::Timeout => {
            "check the address, and that the service runs"
        }
        ErrorKind::Answer | ErrorKind::Status => {
            "is the address that of the service's API? It ends in /api/v1"
        }
        ErrorKind::RateLimited | ErrorKind::Server => "try again later",
        ErrorKind::AmbiguousProperty => {
            "--by-id takes the ids of properties in place of their names"
        }
        ErrorKind::UnknownProperty => "hookgate api get model ID lists the properties",
        ErrorKind::Config => "write the whole address: https://service.example/api/v1",
        _ => "check the values against the data model: hookgate api get model ID",
    };
    Fault::new(class, chain(error)).advise(advice)
}
