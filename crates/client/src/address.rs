//! Addresses, and the paths of requests.

use std::fmt::Write as _;

use http::Uri;
use http::uri::Authority;

use crate::error::{Error, ErrorKind};

pub(crate) fn config(message: &str) -> Error {
    Error::new(ErrorKind::Config, message)
}

/// Reads an address of http or https, and repeats nothing of it in its errors: a password may stand
/// in it.
pub(crate) fn address(text: &str) -> Result<Uri, Error> {
    let uri: Uri = text
        .parse()
        .map_err(|_| config("the address is not well-formed"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(config(
            "the address does not begin with http:// or https://",
        ));
    }
    // `Uri` drops a fragment, and takes no port for one that is out of range.
    if text.contains('#') {
        return Err(config(
            "the address has a fragment: it must end before the #",
        ));
    }
    let authority = uri.authority().map_or("", Authority::as_str);
    if authority.contains('@') {
        return Err(config("the address has a user name or a password"));
    }
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(config("the address names no host"));
    }
    if authority.len() > host.len() && uri.port_u16().is_none_or(|port| port == 0) {
        return Err(config("the address's port is not a number from 1 to 65535"));
    }
    Ok(uri)
}

pub(crate) fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

/// A path with a query.
#[derive(Debug)]
pub(crate) struct Query(pub(crate) String);

impl Query {
    pub(crate) fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let mark = if self.0.contains('?') { '&' } else { '?' };
        self.0.push(mark);
        encode(&mut self.0, name);
        self.0.push('=');
        encode(&mut self.0, value);
    }
}

/// Writes an id as one segment of a path.
///
/// # Errors
/// An empty id, and dots that a server may resolve: the request would be one for another object.
pub(crate) fn segment(id: &str) -> Result<String, Error> {
    if ["", ".", ".."].contains(&id) {
        return Err(config(&format!("{id:?} is not an id")));
    }
    let mut segment = String::new();
    encode(&mut segment, id);
    Ok(segment)
}

fn encode(into: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            into.push(char::from(byte));
        } else {
            // A text can always be written.
            let _ = write!(into, "%{byte:02X}");
        }
    }
}
