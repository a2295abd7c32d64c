//! Who may call: the address that is listened on, the names in `Host`, and the token of an exposed emulator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::uri::Authority;

/// The rules of one server.
#[derive(Debug)]
pub(crate) struct Access {
    /// The address that is listened on.
    pub(crate) address: SocketAddr,
    /// The token for control and page, where the emulator is exposed to other machines.
    pub(crate) token: Option<String>,
    /// Names in `Host` beside those of this machine.
    pub(crate) hosts: Vec<String>,
}

impl Access {
    /// Returns whether a request with this `Host` is for this server. A page on another machine can point a name of its own to
    /// 127.0.0.1 (DNS rebinding): its requests carry that name.
    pub(crate) fn knows_host(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else {
            return false;
        };
        let own = self.address.ip();
        let is_own = match name.parse::<IpAddr>() {
            // A server on every address of a machine is reached by any of them, but by a name only where that was allowed.
            Ok(address) => {
                own.is_unspecified()
                    || address == own
                    || address == Ipv4Addr::LOCALHOST
                    || address == Ipv6Addr::LOCALHOST
            }
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        };
        is_own
            || self
                .hosts
                .iter()
                .any(|host| host.eq_ignore_ascii_case(&name))
    }

    /// Returns whether this is the token. The comparison takes the same time for each wrong text of the same length.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        self.token
            .as_deref()
            .is_some_and(|token| is_same(token.as_bytes(), text.as_bytes()))
    }
}

/// Returns whether two texts are equal, in a time that depends on their lengths alone.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let pairs = one.iter().zip(other);
    let differences = pairs.fold(0, |found, (one, other)| found | (one ^ other));
    std::hint::black_box(differences) == 0 && one.len() == other.len()
}

/// `[::1]:8080` is `::1`, and `localhost:8080` is `localhost`. `None` if it is not a host with an optional port: a user name before the
/// host, and a text behind the bracket or in place of the port, name another server to another reader.
fn name_of(host: &str) -> Option<String> {
    let authority = host.parse::<Authority>().ok()?;
    let name = authority.host();
    let rest = host.strip_prefix(name)?;
    let is_port = match rest.strip_prefix(':') {
        Some(port) => port.bytes().all(|byte| byte.is_ascii_digit()),
        None => rest.is_empty(),
    };
    let name = match name.strip_prefix('[') {
        Some(rest) => rest
            .strip_suffix(']')
            .filter(|ip| ip.parse::<Ipv6Addr>().is_ok())?,
        None => name,
    };
    is_port.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str, hosts: &[&str]) -> Access {
        Access {
            address: address.parse().unwrap(),
            token: Some("made_up".to_owned()),
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        }
    }

    // fault V1: a `Host` with a user name, or with a text behind the bracket or in place of the port, passes for this machine
    #[test]
    fn foreign_names_are_not_known() {
        let local = access("127.0.0.1:8080", &[]);
        for host in [
            "localhost:8080",
            "LOCALHOST",
            "127.0.0.1:8080",
            "[::1]:8080",
        ] {
            assert!(local.knows_host(host), "{host}");
        }
        for host in [
            "example.com",
            "localhost.example.com:8080",
            "127.0.0.1.nip.io",
            "192.0.2.1",
            "",
            "127.0.0.1:8080@evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "[::1]evil.example",
            "[::1]evil.example:8080",
            "localhost:x.evil.example",
            "localhost:+8080",
            "[::1",
            "::1",
            "[127.0.0.1]",
            "localhost/evil.example",
        ] {
            assert!(!local.knows_host(host), "{host}");
        }
        let open = access("0.0.0.0:8080", &["emulator.test"]);
        assert!(open.knows_host("192.0.2.1:8080") && open.knows_host("Emulator.test:8080"));
        assert!(!open.knows_host("example.com"));
    }

    #[test]
    fn only_the_token_is_the_token() {
        let access = access("0.0.0.0:1", &[]);
        assert!(access.is_token("made_up"));
        for wrong in ["", "made_u", "made_up_", "made_uq"] {
            assert!(!access.is_token(wrong), "{wrong}");
        }
    }
}
