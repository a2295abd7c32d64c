//! The authentication of a trigger's calls.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, header};
use serde::{Deserialize, Serialize};

/// The authentication that a trigger asks for, as in a seed.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Auth {
    #[serde(default)]
    mode: Mode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    #[default]
    None,
    Basic,
    Header,
}

impl Auth {
    /// # Errors
    /// A sentence that states the expected form.
    pub(super) fn check(&self) -> Result<(), String> {
        let (login, field) = (
            self.username.is_some() || self.password.is_some(),
            self.name.is_some() || self.value.is_some(),
        );
        let expected = match self.mode {
            Mode::None if login || field => "`mode` alone for `none`",
            Mode::Basic if self.username.is_none() || self.password.is_none() || field => {
                "`username` and `password` for `basic`"
            }
            Mode::Header if self.name.is_none() || self.value.is_none() || login => {
                "`name` and `value` for `header`"
            }
            Mode::Header if self.header_name().is_none() => "a header's name in `name`",
            Mode::Header if self.value.as_deref() == Some("") => "a secret in `value`",
            Mode::Basic if self.username.iter().any(|name| name.contains(':')) => {
                "a `username` without a colon"
            }
            _ => return Ok(()),
        };
        Err(format!("expected {expected}"))
    }

    /// Whether a call with these headers is allowed.
    pub(super) fn permits(&self, headers: &HeaderMap) -> bool {
        match self.mode {
            Mode::None => true,
            Mode::Header => {
                let given = self.header_name().and_then(|name| only(headers, &name));
                let value = self.value.as_deref().unwrap_or_default();
                given.is_some_and(|given| same(given, value.as_bytes()))
            }
            Mode::Basic => {
                let given = only(headers, &header::AUTHORIZATION).unwrap_or_default();
                let (scheme, given) = given.split_at(given.len().min(6));
                let username = self.username.as_deref().unwrap_or_default();
                let password = self.password.as_deref().unwrap_or_default();
                let expected = STANDARD.encode(format!("{username}:{password}"));
                scheme.eq_ignore_ascii_case(b"basic ")
                    && same(given.trim_ascii(), expected.as_bytes())
            }
        }
    }

    pub(super) fn is_basic(&self) -> bool {
        self.mode == Mode::Basic
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
        let hidden = |secret: &Option<String>| secret.as_ref().map(|_| "…".to_owned());
        Self {
            password: hidden(&self.password),
            value: hidden(&self.value),
            ..self.clone()
        }
    }

    fn header_name(&self) -> Option<HeaderName> {
        self.name.as_deref()?.parse().ok()
    }
}

impl std::fmt::Debug for Auth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth")
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// The value of a header that is there once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

/// Compares in a time that depends on the lengths alone.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let bytes = given.iter().zip(expected);
    let differs = bytes.fold(0, |differs, (one, other)| differs | (one ^ other));
    std::hint::black_box(differs) == 0 && given.len() == expected.len()
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
            let auth: Auth = serde_json::from_value(wrong.clone()).unwrap();
            assert!(auth.check().unwrap_err().starts_with("expected"), "{wrong}");
        }
        assert!(serde_json::from_value::<Auth>(json!({ "mode": "digest" })).is_err());
        let shown = auth(json!({ "mode": "header", "name": "x-key", "value": "hidden" })).shown();
        assert!(!serde_json::to_string(&shown).unwrap().contains("hidden"));
    }
}
