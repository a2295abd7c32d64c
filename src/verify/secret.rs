//! The secret of a subscription.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use base64ct::{Base64, Encoding as _};
use zeroize::Zeroizing;

use crate::config::{ConfigError, ConfigErrorKind as Kind};
use crate::scheme::Key;

const PREFIX: &str = "whsec_";
/// The least number of characters after the prefix. A secret of the service is far longer; shorter
/// ones can be guessed.
const MIN_RANDOM_CHARS: usize = 16;
/// The least number of different characters after the prefix. 16 random hex digits have fewer once
/// in 30,000 times.
const MIN_DIFFERENT_CHARS: usize = 6;
/// How the secrets begin that this project has made up for its pages, examples and tests. (One page
/// and some tests also have a secret of Standard Webhooks' published vectors.)
const PUBLISHED: &str = "whsec_made_up_";
/// The fewest bytes of a key that is written in base64: Standard Webhooks asks for 24 to 64.
const FEWEST_BYTES: usize = 16;
const API_KEY_PREFIXES: [&str; 3] = ["tk_live_", "tk_test_", "mcp_"];
const NOT_TEXT: &str = "the secret is not UTF-8 text";
/// The greatest size of a secret's file: more than any secret needs. It keeps a large file, named
/// by mistake, out of memory.
const MAX_FILE_BYTES: u16 = 4_096;

/// The secret of a subscription, `whsec_…`: the key of its signatures.
///
/// The key is the **whole text**, prefix included (service specification, *Events*, *Signature*,
/// rule 2). Other services strip the prefix and decode the rest as base64; this one does not.
///
/// It can't be printed, compared, serialised or read back, and is wiped when dropped. The
/// constructors refuse text that can't be a secret and say which text to paste instead.
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
    /// Takes the text as the service shows it when a subscription is created. Tests may pass a
    /// made-up secret, which begins with `whsec_made_up_`.
    ///
    /// # Errors
    /// Empty, blank, white space or quotes around it, white space, invisible or control characters
    /// inside, an API key, no `whsec_` in front or two of them, nothing or fewer than 16 characters
    /// after it, or fewer than six different ones, a placeholder or a mask such as
    /// `${WEBHOOK_SECRET}`, `<secret>`, `your_webhook_secret` and `••••`: see
    /// [`ConfigErrorKind`](crate::ConfigErrorKind).
    ///
    /// # Security
    /// Read the secret of a program with [`from_env`](Self::from_env) or
    /// [`from_file`](Self::from_file): they refuse the secrets that this project has published.
    /// Where it comes from elsewhere, call [`unpublished`](Self::unpublished).
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

    /// Takes a secret that does not start with `whsec_`, for a service that was configured with its
    /// own form.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for the prefix; the whole text must have at least 16
    /// characters.
    ///
    /// # Security
    /// The prefix is the only sign that the right text was pasted. Without it, a wrong key shows
    /// only as signatures that never match.
    pub fn unprefixed(text: &str) -> Result<Self, ConfigError> {
        refuse_pasting_mistakes(text)?;
        Self::of_length(text, text.strip_prefix(PREFIX).unwrap_or(text))
    }

    /// Reads an environment variable.
    ///
    /// # Errors
    /// `SecretUnset`, an error of [`new`](Self::new), or `GuessableSecret` for a text that begins
    /// with `whsec_made_up_`: it is published. The message names the variable.
    pub fn from_env(variable: impl AsRef<OsStr>) -> Result<Self, ConfigError> {
        Self::of_variable(variable.as_ref(), Self::new)
    }

    /// As [`from_env`](Self::from_env), for a secret of [another form](Self::unprefixed).
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env), except for the prefix.
    ///
    /// # Security
    /// As with [`unprefixed`](Self::unprefixed).
    pub fn from_env_unprefixed(variable: impl AsRef<OsStr>) -> Result<Self, ConfigError> {
        Self::of_variable(variable.as_ref(), Self::unprefixed)
    }

    /// Reads a file, such as a mounted secret. One line break at its end is not part of the secret.
    ///
    /// # Errors
    /// `SecretUnreadable`, an error of [`new`](Self::new), or `GuessableSecret` for a text that
    /// begins with `whsec_made_up_`: it is published. The message names the path.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Self::of_file(path.as_ref(), Self::new)
    }

    /// As [`from_file`](Self::from_file), for a secret of [another form](Self::unprefixed).
    ///
    /// # Errors
    /// As [`from_file`](Self::from_file), except for the prefix.
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
            .and_then(|text| of_text(&Zeroizing::new(text))?.unpublished())
            .map_err(|error| error.with_origin(variable.to_string_lossy().into_owned()))
    }

    fn of_file(path: &Path, of_text: OfText) -> Result<Self, ConfigError> {
        read_line(path)
            .and_then(|text| of_text(&text)?.unpublished())
            .map_err(|error| error.with_origin(path.display().to_string()))
    }

    /// Checks what follows the prefix.
    fn of_length(text: &str, random: &str) -> Result<Self, ConfigError> {
        refuse_placeholders(random)?;
        if random.chars().count() < MIN_RANDOM_CHARS {
            return Err(unusable(
                "the secret is too short: 16 characters or more are expected after the prefix",
            ));
        }
        refuse_few_characters(random)?;
        Ok(Self(Zeroizing::new(text.to_owned())))
    }

    /// Returns this secret, unless it begins with `whsec_made_up_`, as do those that this project
    /// has made up for its pages, examples and tests. [`from_env`](Self::from_env) and
    /// [`from_file`](Self::from_file) call it; a program that reads its secrets in another way,
    /// from a database or from lines of a file, calls it for each.
    ///
    /// ```
    /// use hookgate::{ConfigErrorKind, Secret};
    ///
    /// let row = "whsec_made_up_for_this_example";
    /// let error = Secret::new(row)?.unpublished().unwrap_err();
    /// assert_eq!(error.kind(), ConfigErrorKind::GuessableSecret);
    /// # Ok::<(), hookgate::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// `GuessableSecret`: the secret is published.
    pub fn unpublished(self) -> Result<Self, ConfigError> {
        if self.0.starts_with(PUBLISHED) {
            return Err(guessable(
                "this secret is published: anyone can sign with it: paste the secret of your own subscription (each text with made_up_ after its prefix counts as published; Secret::new takes it in tests)",
            ));
        }
        Ok(self)
    }

    /// The key: the whole text, prefix included.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the key that the text stands for.
    ///
    /// # Errors
    /// `UnusableSecret` for a text that is not of this form.
    pub(crate) fn to_key(&self, form: Key) -> Result<Zeroizing<Vec<u8>>, ConfigError> {
        let prefix = match form {
            Key::Text => return Ok(Zeroizing::new(self.as_bytes().to_vec())),
            Key::Base64After(prefix) => prefix,
        };
        let text = self.0.strip_prefix(prefix).unwrap_or(&self.0);
        // In constant time, as the text is a secret.
        let mut bytes = Zeroizing::new(vec![0; text.len() / 4 * 3]);
        let length = Base64::decode(text, &mut bytes).map(<[u8]>::len);
        let length = length.map_err(|_| {
            unusable("the secret is not base64 after its prefix: with this scheme it stands for bytes; paste it whole, as the sender shows it")
        })?;
        bytes.truncate(length);
        if length < FEWEST_BYTES {
            return Err(unusable(
                "the secret stands for fewer than 16 bytes: paste it whole, as the sender shows it",
            ));
        }
        Ok(bytes)
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

fn guessable(message: &'static str) -> ConfigError {
    ConfigError::saying(Kind::GuessableSecret, message)
}

fn refuse_pasting_mistakes(text: &str) -> Result<(), ConfigError> {
    const QUOTES: [char; 7] = ['"', '\'', '`', '“', '”', '‘', '’'];
    let is_api_key = |prefix: &&str| text.starts_with(*prefix);
    let is_white = |char: char| char.is_whitespace() || is_invisible(char);
    let trimmed = text.trim_matches(is_white);
    // In this order, since the earlier errors say more about such a text.
    Err(if text.is_empty() {
        unusable("the secret is empty: paste the whole whsec_… text of the subscription")
    } else if text.starts_with('\u{feff}') {
        ConfigError::new(Kind::SecretByteOrderMark)
    } else if trimmed.is_empty() {
        unusable("the secret is only white space: paste the whole whsec_… text of the subscription")
    } else if trimmed != text {
        unusable(
            "white space around the secret, which may be an invisible character: paste it without spaces or line breaks",
        )
    } else if text.starts_with(QUOTES) || text.ends_with(QUOTES) {
        unusable("quotes around the secret: paste it without them")
    } else if API_KEY_PREFIXES.iter().any(is_api_key) {
        ConfigError::new(Kind::SecretApiKey)
    } else if text.contains(|char: char| is_white(char) || char.is_control()) {
        unusable(
            "white space, a line break, an invisible or a control character inside the secret: one secret, on one line",
        )
    } else {
        return Ok(());
    })
}

/// Zero-width characters and marks of the direction of text, which editors, chats and web pages add
/// when text is copied.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{2069}'
            | '\u{feff}'
    )
}

/// Refuses texts that stand in a template, an example or on a masked page in place of the secret.
fn refuse_placeholders(random: &str) -> Result<(), ConfigError> {
    const TEMPLATES: [(&str, &str); 4] = [("${", "}"), ("{{", "}}"), ("<", ">"), ("%", "%")];
    const WORDS: [&[&str]; 5] = [
        &["your", "secret"],
        &["your", "key"],
        &["webhook", "secret"],
        &["change", "me"],
        &["placeholder"],
    ];
    const MASKS: [&str; 5] = ["****", "••••", "●●●●", "....", "…"];
    let lower = Zeroizing::new(random.to_ascii_lowercase());
    let is_template =
        |(open, close): &(&str, &str)| random.starts_with(open) && random.ends_with(close);
    let has_in_order = |words: &&[&str]| {
        let rest = words.iter().try_fold(lower.as_str(), |rest, word| {
            rest.split_once(word).map(|(_, rest)| rest)
        });
        rest.is_some()
    };
    if TEMPLATES.iter().any(is_template) || WORDS.iter().any(has_in_order) {
        return Err(guessable(
            "this is a placeholder of a template or an example: put the secret of your subscription in its place",
        ));
    }
    if MASKS.iter().any(|mask| random.contains(mask)) {
        return Err(guessable(
            "the secret is masked: paste its whole text, as the service shows it when the subscription is created",
        ));
    }
    Ok(())
}

fn refuse_few_characters(random: &str) -> Result<(), ConfigError> {
    let first_places = random
        .char_indices()
        .filter(|(at, char)| !random[..*at].contains(*char));
    match first_places.take(MIN_DIFFERENT_CHARS).count() {
        MIN_DIFFERENT_CHARS => Ok(()),
        1 => Err(guessable(
            "the secret is one character, repeated: paste the secret of your subscription",
        )),
        _ => Err(guessable(
            "the secret has fewer than six different characters after its prefix: paste the secret of your subscription",
        )),
    }
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
            ("whsec_0123456789\u{200b}abcdef", "inside the secret"),
            ("whsec_0123456789\u{2068}abcdef", "inside the secret"),
            ("whsec_0123456789abcdef\u{200b}", "white space around"),
            ("whsec_0123456789abcdef\u{200d}", "white space around"),
            ("\u{2060}whsec_0123456789abcdef", "white space around"),
            ("whsec_0123456789abcdef\u{feff}", "white space around"),
            ("\u{200c}\u{2060}", "only white space"),
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
    fn what_can_be_guessed_is_refused_with_a_sentence() {
        for (random, message) in [
            ("xxxxxxxxxxxxxxxxxxxxxxxx", "one character, repeated"),
            ("0000000000000000", "one character, repeated"),
            ("ääääääääääääääää", "one character, repeated"),
            ("0101010101010101", "fewer than six different"),
            ("abcdeabcdeabcdeabcdeabcde", "fewer than six different"),
            ("****************", "masked"),
            ("••••", "masked"),
            ("••••••••••••••••", "masked"),
            ("0123456789••••abcdef", "masked"),
            ("0123456789abcdef…", "masked"),
            ("${WEBHOOK_SECRET}", "placeholder"),
            ("{{ .Values.token }}", "inside the secret"),
            ("{{.Values.token}}", "placeholder"),
            ("<token>", "placeholder"),
            ("<paste-it-in-here>", "placeholder"),
            ("%WEBHOOK_TOKEN%", "placeholder"),
            ("$WEBHOOK_SECRET", "placeholder"),
            ("your_webhook_secret_here", "placeholder"),
            ("Your-Secret-Goes-Here", "placeholder"),
            ("change_me_change_me", "placeholder"),
        ] {
            for error in [
                Secret::new(&format!("whsec_{random}")).unwrap_err(),
                Secret::unprefixed(random).unwrap_err(),
            ] {
                assert!(error.to_string().contains(message), "{random}: {error}");
                let guessable = error.kind() == Kind::GuessableSecret;
                assert_eq!(guessable, message != "inside the secret", "{random}");
            }
        }
        // Six different characters are enough, and so is a word of a placeholder by itself.
        for random in ["0123450123450123", "aB3dE5<7hJ9kL1mN", "0123456789yoursabc"] {
            assert!(Secret::new(&format!("whsec_{random}")).is_ok(), "{random}");
        }
    }

    #[test]
    fn published_secrets_are_for_tests_and_not_for_the_environment_or_files() {
        let published = "whsec_made_up_for_local_tries";
        assert!(Secret::new(published).is_ok());
        assert!(Secret::unprefixed(published).is_ok());
        let path = std::env::temp_dir().join(format!("hookgate-published-{}", std::process::id()));
        std::fs::write(&path, format!("{published}\n")).unwrap();
        let read = [
            Secret::from_file(&path),
            Secret::from_file_unprefixed(&path),
        ];
        std::fs::remove_file(&path).unwrap();
        for error in read.map(Result::unwrap_err) {
            assert_eq!(error.kind(), Kind::GuessableSecret);
            let said = error.to_string();
            assert!(said.contains(": this secret is published"), "{said}");
            assert!(said.contains("hookgate-published-"), "{said}");
            assert!(!said.contains("local_tries"), "{said}");
        }
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
