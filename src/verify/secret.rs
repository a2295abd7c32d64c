//! The secret of a subscription.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use zeroize::Zeroizing;

use crate::config::{ConfigError, ConfigErrorKind as Kind};

const PREFIX: &str = "whsec_";
/// The least number of characters after the prefix. A secret of the service is far longer; shorter ones can be guessed.
const MIN_RANDOM_CHARS: usize = 16;
const API_KEY_PREFIXES: [&str; 3] = ["tk_live_", "tk_test_", "mcp_"];
const NOT_TEXT: &str = "the secret is not UTF-8 text";
/// The greatest size of a secret's file: more than any secret needs. It keeps a large file, named by mistake, out of memory.
const MAX_FILE_BYTES: u16 = 4_096;

/// The secret of a subscription, `whsec_…`: the key of its signatures.
///
/// The key is the **whole text**, prefix included (service specification, *Events*, *Signature*, rule 2). Other services
/// strip the prefix and decode the rest as base64; this one does not.
///
/// It can't be printed, compared, serialised or read back, and is wiped when dropped. The constructors refuse text that can't be
/// a secret and say which text to paste instead.
///
/// ```
/// use hookgate::{Secret, ConfigErrorKind};
///
/// let secret = Secret::new("whsec_made_up_for_this_example")?;
/// assert_eq!(format!("{secret:?}"), "Secret([redacted])");
/// assert_eq!(Secret::new("tk_live_0123456789abcdef").unwrap_err().kind(), ConfigErrorKind::SecretApiKey);
/// # Ok::<(), hookgate::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

/// One of the two constructors from text.
type OfText = fn(&str) -> Result<Secret, ConfigError>;

impl Secret {
    /// Takes the text as the service shows it when a subscription is created.
    ///
    /// # Errors
    /// Empty, blank, white space or quotes around it, white space or control characters inside, an API key, no `whsec_`
    /// in front or two of them, nothing or fewer than 16 characters after it: see [`ConfigErrorKind`](crate::ConfigErrorKind).
    pub fn new(text: &str) -> Result<Self, ConfigError> {
        refuse_pasting_mistakes(text)?;
        let random = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| ConfigError::new(Kind::SecretWithoutPrefix))?;
        if random.is_empty() {
            return Err(unusable(
                "the secret ends after its prefix whsec_: paste the whole text of the subscription",
            ));
        }
        if random.starts_with(PREFIX) {
            return Err(unusable(
                "the secret starts with whsec_ twice: paste it as it is shown, prefix included, and put nothing in front",
            ));
        }
        Self::of_length(text, random)
    }

    /// Takes a secret that does not start with `whsec_`, for a service that was configured with its own form.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for the prefix; the whole text must have at least 16 characters.
    ///
    /// # Security
    /// The prefix is the only sign that the right text was pasted. Without it, a wrong key shows only as
    /// signatures that never match.
    pub fn unprefixed(text: &str) -> Result<Self, ConfigError> {
        refuse_pasting_mistakes(text)?;
        Self::of_length(text, text.strip_prefix(PREFIX).unwrap_or(text))
    }

    /// Reads an environment variable.
    ///
    /// # Errors
    /// `SecretUnset`, or an error of [`new`](Self::new); the message names the variable.
    pub fn from_env(variable: impl AsRef<OsStr>) -> Result<Self, ConfigError> {
        Self::of_variable(variable.as_ref(), Self::new)
    }

    /// As [`from_env`](Self::from_env), for a secret of [another form](Self::unprefixed).
    ///
    /// # Errors
    /// `SecretUnset`, or an error of [`unprefixed`](Self::unprefixed); the message names the variable.
    ///
    /// # Security
    /// As with [`unprefixed`](Self::unprefixed).
    pub fn from_env_unprefixed(variable: impl AsRef<OsStr>) -> Result<Self, ConfigError> {
        Self::of_variable(variable.as_ref(), Self::unprefixed)
    }

    /// Reads a file, such as a mounted secret. One line break at its end is not part of the secret.
    ///
    /// # Errors
    /// `SecretUnreadable`, or an error of [`new`](Self::new); the message names the path.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::of_file(path.as_ref(), Self::new)
    }

    /// As [`from_file`](Self::from_file), for a secret of [another form](Self::unprefixed).
    ///
    /// # Errors
    /// `SecretUnreadable`, or an error of [`unprefixed`](Self::unprefixed); the message names the path.
    ///
    /// # Security
    /// As with [`unprefixed`](Self::unprefixed).
    pub fn from_file_unprefixed(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::of_file(path.as_ref(), Self::unprefixed)
    }

    fn of_variable(variable: &OsStr, of_text: OfText) -> Result<Self, ConfigError> {
        std::env::var_os(variable)
            .ok_or_else(|| ConfigError::new(Kind::SecretUnset))
            .and_then(|text| text.into_string().map_err(|_| unusable(NOT_TEXT)))
            .and_then(|text| of_text(&Zeroizing::new(text)))
            .map_err(|error| error.with_origin(variable.to_string_lossy().into_owned()))
    }

    fn of_file(path: &Path, of_text: OfText) -> Result<Self, ConfigError> {
        read_line(path)
            .and_then(|text| of_text(&text))
            .map_err(|error| error.with_origin(path.display().to_string()))
    }

    fn of_length(text: &str, random: &str) -> Result<Self, ConfigError> {
        if random.chars().count() < MIN_RANDOM_CHARS {
            return Err(unusable(
                "the secret is too short: 16 characters or more are expected after the prefix",
            ));
        }
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// The key: the whole text, prefix included.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret([redacted])")
    }
}

fn unusable(message: &'static str) -> ConfigError {
    ConfigError::saying(Kind::UnusableSecret, message)
}

fn refuse_pasting_mistakes(text: &str) -> Result<(), ConfigError> {
    const QUOTES: [char; 7] = ['"', '\'', '`', '“', '”', '‘', '’'];
    let is_api_key = |prefix: &&str| text.starts_with(*prefix);
    let is_white = |char: char| char.is_whitespace() || char.is_control();
    // In this order, since the earlier errors say more about such a text.
    Err(if text.is_empty() {
        unusable("the secret is empty: paste the whole whsec_… text of the subscription")
    } else if text.starts_with('\u{feff}') {
        ConfigError::new(Kind::SecretByteOrderMark)
    } else if text.trim().is_empty() {
        unusable("the secret is only white space: paste the whole whsec_… text of the subscription")
    } else if text.trim() != text {
        unusable("white space around the secret: paste it without spaces or line breaks")
    } else if text.starts_with(QUOTES) || text.ends_with(QUOTES) {
        unusable("quotes around the secret: paste it without them")
    } else if API_KEY_PREFIXES.iter().any(is_api_key) {
        ConfigError::new(Kind::SecretApiKey)
    } else if text.contains(is_white) {
        unusable(
            "white space, a line break or a control character inside the secret: one secret, on one line",
        )
    } else {
        return Ok(());
    })
}

fn read_line(path: &Path) -> Result<Zeroizing<String>, ConfigError> {
    let unreadable = |error| ConfigError::new(Kind::SecretUnreadable).caused_by(error);
    // Full size from the start: a vector that grows leaves copies of the secret behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(usize::from(MAX_FILE_BYTES) + 1));
    File::open(path)
        .and_then(|file| {
            file.take(u64::from(MAX_FILE_BYTES) + 1)
                .read_to_end(&mut bytes)
        })
        .map_err(unreadable)?;
    if bytes.len() > usize::from(MAX_FILE_BYTES) {
        return Err(unreadable(std::io::Error::other(format!(
            "longer than {MAX_FILE_BYTES} bytes"
        ))));
    }
    let of_utf16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    let text = std::str::from_utf8(&bytes).map_err(|_| match of_utf16 {
        true => ConfigError::new(Kind::SecretByteOrderMark),
        false => unusable(NOT_TEXT),
    })?;
    let line = text.strip_suffix('\n').unwrap_or(text);
    Ok(Zeroizing::new(
        line.strip_suffix('\r').unwrap_or(line).to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_cannot_be_right_and_says_why() {
        for (text, message) in [
            ("", "is empty"),
            ("\u{feff}whsec_0123456789abcdef", "byte order mark"),
            (" \t", "only white space"),
            ("whsec_0123456789abcdef\n", "white space around"),
            (" whsec_0123456789abcdef", "white space around"),
            ("\"whsec_0123456789abcdef\"", "quotes around"),
            ("'whsec_0123456789abcdef'", "quotes around"),
            ("\"whsec_0123456789abcdef", "quotes around"),
            ("whsec_0123456789abcdef`", "quotes around"),
            ("tk_live_0123456789abcdef", "an API key"),
            ("tk_test_0123456789abcdef", "an API key"),
            ("mcp_0123456789abcdef", "an API key"),
            ("0123456789abcdef0123", "does not start with whsec_"),
            ("v1,whsec_0123456789abcdef", "does not start with whsec_"),
            ("whsec_0123456789 abcdef", "inside the secret"),
            (
                "whsec_0123456789abcdef\nwhsec_0123456789abcdeg",
                "inside the secret",
            ),
            ("whsec_0123456789\u{a0}abcdef", "inside the secret"),
            ("whsec_0123456789abcdef\0", "inside the secret"),
            ("whsec_\t0123456789abcdef", "inside the secret"),
            ("whsec_whsec_0123456789abcdef", "twice"),
            ("whsec_", "ends after its prefix"),
            ("whsec_0123456789abcde", "too short"),
        ] {
            let error = Secret::new(text).unwrap_err();
            assert!(error.to_string().contains(message), "{text:?}: {error}");
            let shown = format!("{error} {error:?}");
            assert!(text.len() < 8 || !shown.contains("0123456789"), "{shown}");
        }
        let good = Secret::new("whsec_0123456789abcdef").unwrap();
        assert_eq!(format!("{good:?}"), "Secret([redacted])");
    }

    #[test]
    fn another_form_needs_the_explicit_constructor() {
        assert!(Secret::unprefixed("0123456789abcdef").is_ok());
        for (text, message) in [
            ("0123456789abcde", "too short"),
            ("whsec_0123456789", "too short"),
            ("tk_live_0123456789abcdef", "an API key"),
            ("0123456789 abcdef", "inside the secret"),
            ("0123456789\r\nabcdef", "inside the secret"),
            ("", "is empty"),
        ] {
            let error = Secret::unprefixed(text).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
        }
    }

    #[test]
    fn reads_a_mounted_file_without_its_line_break() {
        let path = std::env::temp_dir().join(format!("hookgate-secret-{}", std::process::id()));
        for (content, expected) in [
            (b"whsec_0123456789abcdef".as_slice(), None),
            (b"whsec_0123456789abcdef\n", None),
            (b"whsec_0123456789abcdef\r\n", None),
            (b"whsec_0123456789abcdef\n\n", Some("white space around")),
            (
                b"whsec_0123456789abcdef\nwhsec_0123456789abcdef\n",
                Some("inside the secret"),
            ),
            (b"\xff\xfe", Some("byte order mark")),
            (b"whsec_\xff", Some("not UTF-8")),
            (&[b'a'; 4_096], Some("does not start with whsec_")),
            (&[b'a'; 4_097], Some("can't be read")),
        ] {
            std::fs::write(&path, content).unwrap();
            match (Secret::from_file(&path), expected) {
                (Ok(secret), None) => assert_eq!(secret.as_bytes(), b"whsec_0123456789abcdef"),
                (Err(error), Some(message)) => {
                    assert!(error.to_string().contains(message), "{error}");
                }
                (result, _) => panic!("{result:?} for {} bytes", content.len()),
            }
        }
        std::fs::write(&path, b"0123456789abcdef\n").unwrap();
        let unprefixed = Secret::from_file_unprefixed(&path).unwrap();
        assert_eq!(unprefixed.as_bytes(), b"0123456789abcdef");
        std::fs::write(&path, b"tk_live_0123456789abcdef\n").unwrap();
        let error = Secret::from_file_unprefixed(&path).unwrap_err();
        assert!(error.to_string().contains("an API key"), "{error}");
        std::fs::remove_file(&path).unwrap();
        let error = Secret::from_file(&path).unwrap_err();
        assert!(error.to_string().contains("can't be read"), "{error}");
        assert!(error.to_string().contains("hookgate-secret-"), "{error}");
    }

    #[test]
    fn an_unset_variable_is_named() {
        let error = Secret::from_env("HOOKGATE_TEST_UNSET").unwrap_err();
        assert!(error.to_string().contains("is not set"), "{error}");
        assert!(error.to_string().starts_with("HOOKGATE_TEST_UNSET: "));
        let error = Secret::from_env_unprefixed("HOOKGATE_TEST_UNSET").unwrap_err();
        assert!(error.to_string().contains("is not set"), "{error}");
        // Variables that cargo sets: each constructor refuses their text for another reason.
        let error = Secret::from_env_unprefixed("CARGO_PKG_NAME").unwrap_err();
        assert!(error.to_string().contains("too short"), "{error}");
        let error = Secret::from_env("CARGO_PKG_NAME").unwrap_err();
        assert!(
            error.to_string().contains("does not start with whsec_"),
            "{error}"
        );
    }
}
