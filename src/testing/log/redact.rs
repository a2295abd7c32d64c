//! What is taken out before an entry is written.

use bytes::Bytes;
use http::{HeaderName, HeaderValue};

/// Stands where a value was.
pub(crate) const REDACTED: &str = "[redacted]";

/// Words in the names of headers that carry credentials, for whatever stands before the receiver.
const CREDENTIALS: [&str; 10] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "password",
    "api-key",
    "apikey",
    "credential",
    "jwt",
    "session",
];

/// Whether a header of this name, in lower case, carries what lets somebody in elsewhere. None that is signed or checked does.
pub(crate) fn is_credential(name: &str) -> bool {
    CREDENTIALS.iter().any(|word| name.contains(word))
}

/// A header as it is logged.
pub(crate) fn header_as_logged(name: &HeaderName, value: &HeaderValue) -> (String, Bytes) {
    let value = if value.is_sensitive() || is_credential(name.as_str()) {
        Bytes::from_static(REDACTED.as_bytes())
    } else {
        Bytes::copy_from_slice(value.as_bytes())
    };
    (name.as_str().to_owned(), value)
}
