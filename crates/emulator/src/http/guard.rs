//! The checks that every request passes before anything of it is done: the names in `Host`, the
//! origin, the token of an exposed emulator.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Uri};

use crate::answer::ApiError;
use crate::body::is_same;

/// The cookie that keeps the token of the page, which an EventSource can't send otherwise.
pub(super) const COOKIE_NAME: &str = "hookgate_emulator_token";

/// Headers of every answer. Scripts, styles and requests of the page come from this server alone,
/// no page may frame it, and no other site reads it.
const ALWAYS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
];

pub(super) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in ALWAYS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
}

/// Checks `Host` and `Origin`.
///
/// # Errors
/// 403: a name in `Host` that is not this server's, or a change, trigger, control or stream that
/// the page of another site asks for.
pub(super) fn check(
    access: &Access,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), ApiError> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().unwrap_or_default(),
        _ => return Err(ApiError::forbidden("the header Host has to be there once")),
    };
    // The host of an absolute address would win.
    let absolute = uri.authority().map(http::uri::Authority::as_str);
    if !access.knows_host(host) || absolute.is_some_and(|host| !access.knows_host(host)) {
        let message = "the header Host names another server; `--allow-host NAME` allows a name";
        return Err(ApiError::forbidden(message));
    }
    // The page may be reached by a link, and the API's GET changes nothing. All else is for no
    // other site: control, stream and the page's parts, and triggers, since a workflow with a GET
    // trigger runs.
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if reads && (uri.path() == "/" || uri.path().starts_with("/api/v1/")) {
        return Ok(());
    }
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().unwrap_or_default();
        let of_http = origin
            .strip_prefix("http://")
            .or(origin.strip_prefix("https://"));
        of_http.is_some_and(|of| of.eq_ignore_ascii_case(host))
    };
    if !headers.get_all(ORIGIN).iter().all(is_own) {
        return Err(ApiError::forbidden("the header Origin names another site"));
    }
    let is_own = |site: &HeaderValue| {
        let site = site.to_str().unwrap_or_default();
        site.eq_ignore_ascii_case("same-origin") || site.eq_ignore_ascii_case("none")
    };
    if !headers.get_all("sec-fetch-site").iter().all(is_own) {
        return Err(ApiError::forbidden(
            "the request comes from the page of another site",
        ));
    }
    Ok(())
}

/// Checks the token of an exposed emulator, for control and page.
///
/// # Errors
/// 401.
pub(super) fn check_token(access: &Access, headers: &HeaderMap) -> Result<(), ApiError> {
    if access.token.is_none() || has_token(access, headers) {
        return Ok(());
    }
    let message = "this emulator is exposed: send Authorization: Bearer <token> with the token that it printed, or open the \
                   page with /?token=<token>";
    Err(ApiError::unauthorized(message))
}

fn has_token(access: &Access, headers: &HeaderMap) -> bool {
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let header = headers.get(AUTHORIZATION).map(text).unwrap_or_default();
    if header
        .strip_prefix("Bearer ")
        .is_some_and(|token| access.is_token(token))
    {
        return true;
    }
    let cookies = headers.get_all(COOKIE).iter().map(text);
    cookies.into_iter().any(|cookies| {
        let mut pairs = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == COOKIE_NAME && access.is_token(value))
    })
}

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
    /// Returns whether a request with this `Host` is for this server. A page on another machine can
    /// point a name of its own to 127.0.0.1 (DNS rebinding): its requests carry that name.
    pub(crate) fn knows_host(&self, host: &str) -> bool {
        let Some(name) = name_of(host) else {
            return false;
        };
        let own = self.address.ip();
        let is_own = match name.parse::<IpAddr>() {
            // A server on every address of a machine is reached by any of them, but by a name only
            // where that was allowed.
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

    /// Returns whether this is the token. The comparison takes the same time for each wrong text of
    /// the same length.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        self.token
            .as_deref()
            .is_some_and(|token| is_same(token.as_bytes(), text.as_bytes()))
    }
}

/// `[::1]:8080` is `::1`, and `localhost:8080` is `localhost`. `None` if it is not a host with an
/// optional port: a user name before the host, and a text behind the bracket or in place of the
/// port, name another server to another reader.
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
