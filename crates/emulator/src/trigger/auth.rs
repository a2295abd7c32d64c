//! The authentication of a trigger's calls.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, header};
use serde::{Deserialize, Serialize};

use crate::body::is_same;

/// The authentication that a trigger asks for, as in a seed. `Debug` shows no secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "camelCase", deny_unknown_fields)]
pub(crate) enum Auth {
    None {},
    Basic { username: String, password: String },
    Header { name: String, value: String },
}

impl Default for Auth {
    fn default() -> Self {
        Self::None {}
    }
}

impl Auth {
    /// # Errors
    /// A sentence that states the expected form.
    pub(super) fn check(&self) -> Result<(), String> {
        let expected = match self {
            Self::Header { value, .. } if value.is_empty() => "a secret in `value`",
            Self::Header { .. } if self.header_name().is_none() => "a header's name in `name`",
            Self::Basic { username, .. } if username.contains(':') => {
                "a `username` without a colon"
            }
            _ => return Ok(()),
        };
        Err(format!("expected {expected}"))
    }

    /// Whether a call with these headers is allowed.
    pub(super) fn permits(&self, headers: &HeaderMap) -> bool {
        match self {
            Self::None {} => true,
            Self::Header { value, .. } => {
                let given = self.header_name().and_then(|name| only(headers, &name));
                given.is_some_and(|given| is_same(given, value.as_bytes()))
            }
            Self::Basic { username, password } => {
                let given = only(headers, &header::AUTHORIZATION).unwrap_or_default();
                let (scheme, given) = given.split_at(given.len().min(6));
                let expected = STANDARD.encode(format!("{username}:{password}"));
                scheme.eq_ignore_ascii_case(b"basic ")
                    && is_same(given.trim_ascii(), expected.as_bytes())
            }
        }
    }

    /// Whether a header carries a secret, which the log does not show.
    pub(super) fn hides(&self, name: &HeaderName) -> bool {
        let common = [
            header::AUTHORIZATION,
            header::PROXY_AUTHORIZATION,
            header::COOKIE,
        ];
        common.contains(name) || self.header_name().as_ref() == Some(name)
    }

    /// Returns the authentication without its secret.
    pub(super) fn shown(&self) -> Self {
        let mut shown = self.clone();
        match &mut shown {
            Self::None {} => {}
            Self::Basic { password, .. } => *password = "…".to_owned(),
            Self::Header { value, .. } => *value = "…".to_owned(),
        }
        shown
    }

    fn header_name(&self) -> Option<HeaderName> {
        match self {
            Self::Header { name, .. } => name.parse().ok(),
            _ => None,
        }
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auth")
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use serde_json::{Value, json};

    use super::*;

    fn auth(json: Value) -> Auth {
        let auth: Auth = serde_json::from_value(json).unwrap();
        auth.check().unwrap();
        auth
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn a_call_is_allowed_with_the_secret_alone() {
        let none = auth(json!({ "mode": "none" }));
        assert!(none.permits(&headers(&[])));

        let header = auth(json!({ "mode": "header", "name": "X-API-Key", "value": "k" }));
        assert!(header.permits(&headers(&[("x-api-key", "k")])));
        for wrong in [
            &[][..],
            &[("x-api-key", "")],
            &[("x-api-key", "K")],
            &[("x-api-key", "kk")],
            &[("x-api-key", "k"), ("x-api-key", "k")],
            &[("authorization", "k")],
        ] {
            assert!(!header.permits(&headers(wrong)), "{wrong:?}");
        }

        let basic =
            auth(json!({ "mode": "basic", "username": "Aladdin", "password": "open sesame" }));
        for right in [
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            "basic  QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ] {
            assert!(
                basic.permits(&headers(&[("authorization", right)])),
                "{right}"
            );
        }
        for wrong in [
            "",
            "Basic",
            "Basic ",
            "Bearer QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
            "Basic QWxhZGRpbjpvcGVu",
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ",
        ] {
            assert!(
                !basic.permits(&headers(&[("authorization", wrong)])),
                "{wrong}"
            );
        }
        assert!(!basic.permits(&headers(&[])));
    }

    #[test]
    fn settings_that_do_not_fit_the_mode_are_refused() {
        for wrong in [
            json!({ "mode": "none", "value": "k" }),
            json!({ "mode": "basic", "username": "a" }),
            json!({ "mode": "basic", "username": "a", "password": "b", "name": "c" }),
            json!({ "mode": "basic", "username": "a:b", "password": "c" }),
            json!({ "mode": "header", "value": "k" }),
            json!({ "mode": "header", "name": "two words", "value": "k" }),
            json!({ "mode": "header", "name": "x-key", "value": "" }),
        ] {
            let auth = serde_json::from_value::<Auth>(wrong.clone());
            assert!(
                auth.is_err() || auth.is_ok_and(|auth| auth.check().is_err()),
                "{wrong}"
            );
        }
        assert!(serde_json::from_value::<Auth>(json!({ "mode": "digest" })).is_err());
        let shown = auth(json!({ "mode": "header", "name": "x-key", "value": "hidden" })).shown();
        assert!(!serde_json::to_string(&shown).unwrap().contains("hidden"));
    }
}
