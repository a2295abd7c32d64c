//! Addresses to listen on.

use std::io;

use crate::fault::{Class, Fault};

/// Takes HOST:PORT as it is written. The host is looked up where it is listened on.
pub(crate) fn host_and_port(text: &str) -> Result<String, String> {
    let is_right = |(host, port): (&str, &str)| {
        // Without brackets the end of an IPv6 address would be taken for its port.
        let is_host = !host.is_empty()
            && (!host.contains(':') || host.starts_with('[') && host.ends_with(']'));
        is_host && !port.starts_with('+') && port.parse::<u16>().is_ok()
    };
    if text.rsplit_once(':').is_some_and(is_right) {
        return Ok(text.to_owned());
    }
    Err("write HOST:PORT, such as 127.0.0.1:8787 or [::1]:8787".to_owned())
}

/// The fault of an address that can't be listened on. `free` is the option that takes a free port.
pub(crate) fn cannot_listen(message: &str, free: &str, error: &io::Error) -> Fault {
    let advice = match error.kind() {
        io::ErrorKind::AddrInUse => format!("something listens there already: {free}"),
        io::ErrorKind::AddrNotAvailable => {
            format!("no network of this machine has that address: {free}")
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 are for the system: take a higher one, such as 8787".to_owned()
        }
        _ => "check the host: it is a name or an address of this machine".to_owned(),
    };
    Fault::caused_by(Class::Network, message, error).advise(advice)
}

/// Takes a free port of this machine.
pub(crate) const FREE: &str = "--addr 127.0.0.1:0 takes a free port";
