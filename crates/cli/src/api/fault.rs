//! The errors of the API, with their exit codes.

use hookgate_client::{Error, ErrorKind};

use crate::fault::{Class, Fault, chain};

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
