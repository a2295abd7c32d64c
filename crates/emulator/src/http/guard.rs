//! The checks that every request passes before anything of it is done.

use http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Uri};

use super::Access;
use crate::answer::ApiError;

/// The cookie that keeps the token of the page, which an EventSource can't send otherwise.
pub(super) const COOKIE_NAME: &str = "hookgate_emulator_token";

/// Headers of every answer. Scripts, styles and requests of the page come from this server alone, no page may frame it, and no
/// other site reads it.
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
/// 403: a name in `Host` that is not this server's, or a change, trigger, control or stream that the page of another site asks for.
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
    // The page may be reached by a link, and the API's GET changes nothing. All else is for no other site: control, stream and the
    // page's parts, and triggers, since a workflow with a GET trigger runs.
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
