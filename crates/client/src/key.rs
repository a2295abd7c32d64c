//! Secrets that are sent: API keys, and the authentication of triggers.

use std::ffi::OsStr;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::error::{Error, ErrorKind};

/// The forms that the service's own message about a wrong key states.
const PREFIXES: [&str; 3] = ["tk_live_", "tk_test_", "mcp_"];

/// An API key, `tk_live_…`, `tk_test_…` or `mcp_…`.
///
/// It can't be printed, compared or read back, and is wiped when its last clone is dropped. The
/// buffers of the transport are not wiped.
///
/// ```
/// use hookgate_client::ApiKey;
///
/// let key = ApiKey::new("tk_test_made_up")?;
/// assert_eq!(format!("{key:?}"), "ApiKey([redacted])");
/// assert!(ApiKey::new("whsec_made_up").unwrap_err().to_string().contains("secret of a webhook"));
/// # Ok::<(), hookgate_client::Error>(())
/// ```
#[derive(Clone)]
pub struct ApiKey(HeaderValue);

impl ApiKey {
    /// Takes the text as the service shows it when a key is created.
    ///
    /// # Errors
    /// The text has none of the three forms, or a character that no key has. The message does not
    /// contain the text.
    pub fn new(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Err(Error::new(ErrorKind::Key, why));
        if text.starts_with("whsec_") {
            return wrong("this is the secret of a webhook, not an API key");
        }
        let Some(prefix) = PREFIXES.iter().find(|prefix| text.starts_with(**prefix)) else {
            return wrong("an API key begins with tk_live_, tk_test_ or mcp_");
        };
        if text.len() == prefix.len() {
            return wrong("the API key ends behind its prefix");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return wrong("the API key has white space or another character that no key has");
        }
        Ok(Self(secret_header(&["Bearer ", text])?))
    }

    /// Reads an environment variable.
    ///
    /// # Errors
    /// It is not set, or its value is not a key; the message names the variable.
    pub fn from_env(variable: impl AsRef<OsStr>) -> Result<Self, Error> {
        let name = variable.as_ref().to_string_lossy();
        let wrong = |why: String| Error::new(ErrorKind::Key, why);
        let text =
            std::env::var_os(&variable).ok_or_else(|| wrong(format!("{name} is not set")))?;
        let text = text
            .into_string()
            .map_err(|_| wrong(format!("{name} is not UTF-8")))?;
        Self::new(&Zeroizing::new(text)).map_err(|error| wrong(format!("{name}: {error}")))
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey([redacted])")
    }
}

/// Makes a header whose bytes are wiped when its last clone is dropped, and whose `Debug` says no
/// more than that it is sensitive.
pub(crate) fn secret_header(parts: &[&str]) -> Result<HeaderValue, Error> {
    let length = parts.iter().map(|part| part.len()).sum();
    // Full size from the start: a vector that grows leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(length));
    for part in parts {
        text.extend_from_slice(part.as_bytes());
    }
    let value = HeaderValue::from_maybe_shared(Bytes::from_owner(text));
    let mut value =
        value.map_err(|_| Error::new(ErrorKind::Key, "a header can't carry this secret"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Returns a text of the service without the secrets of the request, since some servers repeat them
/// in their errors.
pub(crate) fn without_secrets(request: &HeaderMap, text: &str) -> String {
    let mut text = text.to_owned();
    for header in request.values().filter(|header| header.is_sensitive()) {
        let value = str::from_utf8(header.as_bytes()).unwrap_or_default();
        let basic = value.strip_prefix("Basic ");
        let bearer = value.strip_prefix("Bearer ");
        let password = basic.and_then(password).unwrap_or_default();
        for secret in [basic.or(bearer).unwrap_or(value), &password] {
            if !secret.is_empty() {
                text = text.replace(secret, "[redacted]");
            }
        }
    }
    text
}

/// Returns a JSON value of the service with each text and each name of a member as
/// [`without_secrets`] returns it.
pub(crate) fn json_without_secrets(request: &HeaderMap, json: Value) -> Value {
    match json {
        Value::String(text) => without_secrets(request, &text).into(),
        Value::Array(items) => items
            .into_iter()
            .map(|item| json_without_secrets(request, item))
            .collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(name, json)| {
                let name = without_secrets(request, &name);
                (name, json_without_secrets(request, json))
            })
            .collect(),
        other => other,
    }
}

fn password(pair: &str) -> Option<Zeroizing<String>> {
    let pair = Zeroizing::new(STANDARD.decode(pair).ok()?);
    let (_, password) = str::from_utf8(&pair).ok()?.split_once(':')?;
    Some(Zeroizing::new(password.to_owned()))
}
