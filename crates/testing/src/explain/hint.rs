//! Signs of mistakes that can't be proven.

use std::fmt;

use hookgate::verify::SIGNATURE;
use hookgate::{Scheme, Secret};
use hookgate_record::LoggedDelivery;
use serde::{Serialize, Serializer};

use super::body::utf16_decoded;
use super::cause::Cause;
use super::json::{Node, Style};
use super::request::RequestFault;
use super::secret::{KnownSecret, looks_decoded};
use super::writer::Writer;

macro_rules! hints {
    ($($kind:ident $name:literal: $what:literal;)*) => {
        /// A sign of a mistake that no computation can prove.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum HintKind {
            $(#[doc = $what] $kind,)*
        }

        impl HintKind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// A short name, in snake case. Stable.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Returns a description of the possible mistake, in one sentence. The wording may
            /// change.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $(Self::$kind => $what,)* }
            }
        }
    };
}

hints! {
    Redacted "redacted": "Something was taken out of the body or the headers when it was logged: its signature can't be verified any more, only made anew.";
    NoBody "no_body": "The delivery was refused before its body was read.";
    BodyEmpty "body_empty": "The body is empty: often it was read before, and a second reading gives no bytes.";
    BodyCompressed "body_compressed": "The body is compressed. The service sends it as it is signed, so a program on the way has compressed it.";
    BodyCutOff "body_cut_off": "The body is incomplete: the missing bytes can't be computed. Look for a limit or a buffer on the way.";
    ReplacementCharacters "replacement_characters": "The body holds U+FFFD, which a decoder writes in place of bytes that are no UTF-8: this can't be undone. Pass the body on as bytes.";
    KeysSorted "keys_sorted": "All keys of the body are sorted, and the service does not sort them: a program parsed the body and wrote it again, and the order of the properties is lost.";
    WrittenAgain "written_again": "This body looks written again: a program parsed it and wrote it in its own form, and its numbers or texts can't be restored. Verify the raw bytes before anything parses them.";
    NotJson "not_json": "The body is not JSON: it is not what the service sends, or was changed on the way.";
    NoSignature "no_signature": "No header holds a signature: the delivery is not the service's, or a proxy dropped its `X-Service-` headers.";
    OtherScheme "other_scheme": "The headers are those of another sender: explain the delivery by its scheme.";
    OtherAlgorithm "other_algorithm": "The signature has the length of another algorithm's, such as SHA-1 or SHA-512: the service signs with HMAC-SHA256.";
    SecretRefused "secret_refused": "A secret can't be right as it is configured.";
    SecretLooksDecoded "secret_looks_decoded": "This looks like a decoded secret: paste the text as the service shows it, `whsec_` included.";
    Request "request": "Apart from the signature, a receiver refuses the request for another reason too.";
    Clock "clock": "Apart from the signature, the time is wrong too.";
    NumbersWrittenAgain "numbers_written_again": "Numbers may have been written again: zeros at the end of a fraction may be lost, as when 1.500 becomes 1.5, and nothing in the body shows how many there were.";
}

/// A sign of a mistake that is not proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    kind: HintKind,
    detail: Option<String>,
}

impl Hint {
    /// Returns the kind of the sign.
    #[must_use]
    pub fn kind(&self) -> HintKind {
        self.kind
    }

    /// Returns the details of this sign.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

/// With name, description and details.
impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([
            ("name", Some(self.kind.name())),
            ("what", Some(self.kind.description())),
            ("detail", self.detail()),
        ])
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.description())?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

/// Returns every sign that the delivery shows.
pub(super) fn all(
    delivery: &LoggedDelivery,
    announced: Option<usize>,
    secrets: &[KnownSecret],
    faults: &[RequestFault],
    clock: Option<&Cause>,
) -> Vec<Hint> {
    let mut hints = Vec::new();
    let mut say = |kind, detail: Option<String>| hints.push(Hint { kind, detail });
    if delivery.unverifiable {
        say(HintKind::Redacted, None);
    }
    match &delivery.body {
        None => say(HintKind::NoBody, None),
        Some(body) => of_body(delivery, body, announced, &mut say),
    }
    of_signature(delivery, &mut say);
    for secret in secrets {
        // The message names the fault, and never contains the text.
        let text = std::str::from_utf8(&secret.text);
        let text = text.map_err(|_| match utf16_decoded(&secret.text) {
            Some(_) => "it is UTF-16: save its file as UTF-8".to_owned(),
            None => "it is not UTF-8".to_owned(),
        });
        let refused = text.and_then(|text| match Secret::new(text) {
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        });
        if let Err(why) = refused {
            say(
                HintKind::SecretRefused,
                Some(format!("{}: {why}", secret.name)),
            );
        }
        if looks_decoded(&secret.text) {
            say(HintKind::SecretLooksDecoded, Some(secret.name.clone()));
        }
    }
    // Without a known secret, it is not known whether the body was changed.
    for fault in faults
        .iter()
        .filter(|fault| fault.is_of_head(announced) || fault.is_of_size())
    {
        let status = fault.refusal.kind().status();
        let detail = format!("{status}: {}", fault.cause);
        say(HintKind::Request, Some(detail));
    }
    if let Some(cause) = clock {
        say(HintKind::Clock, cause.detail().map(str::to_owned));
    }
    // The weakest signs come last, and only where nothing else says why: a sender may write its
    // JSON as it likes.
    let is_explained = hints.iter().any(|hint| hint.kind.explains_alone());
    let document = delivery.body.as_deref().and_then(Node::parse);
    if let (Some(document), Some(body), false) = (document, &delivery.body, is_explained) {
        let sign = written_again(&document, body);
        let mut say = |kind, detail: Option<&str>| {
            let detail = detail.map(str::to_owned);
            hints.push(Hint { kind, detail });
        };
        if document.is_sorted() {
            say(HintKind::KeysSorted, None);
        }
        if sign.is_some() {
            say(HintKind::WrittenAgain, sign);
        } else if document.has_number(|_| true) {
            say(HintKind::NumbersWrittenAgain, None);
        }
    }
    hints
}

impl HintKind {
    /// Whether it is a sign of how the Workspace Data Service writes, or wants its secrets.
    pub(super) fn is_of_service(self) -> bool {
        matches!(
            self,
            Self::SecretRefused | Self::WrittenAgain | Self::NumbersWrittenAgain | Self::KeysSorted
        )
    }

    /// Whether a delivery with this sign is refused whatever its body is.
    fn explains_alone(self) -> bool {
        matches!(
            self,
            Self::NoSignature
                | Self::OtherAlgorithm
                | Self::SecretRefused
                | Self::SecretLooksDecoded
                | Self::Request
                | Self::Clock
        )
    }
}

fn of_body(
    delivery: &LoggedDelivery,
    body: &[u8],
    announced: Option<usize>,
    say: &mut impl FnMut(HintKind, Option<String>),
) {
    let encoding = delivery.header("content-encoding");
    let is_coding = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity")
    };
    let encoded =
        encoding.is_some_and(|codings| codings.split(|byte| *byte == b',').any(is_coding));
    let is_compressed = [b"\x1f\x8b".as_slice(), b"\x28\xb5\x2f\xfd", b"\x78\x9c"]
        .iter()
        .any(|magic| body.starts_with(magic));
    let is_short = announced.filter(|announced| *announced > body.len());
    let document = Node::parse(body);
    if body.is_empty() {
        say(HintKind::BodyEmpty, None);
    } else if is_compressed || encoded {
        say(HintKind::BodyCompressed, None);
    } else if let Some(announced) = is_short {
        let detail = format!("{announced} bytes were announced, {} are there", body.len());
        say(HintKind::BodyCutOff, Some(detail));
    } else if document.is_none() && body.first() == Some(&b'{') && body.last() != Some(&b'}') {
        say(
            HintKind::BodyCutOff,
            Some(format!("behind {} bytes", body.len())),
        );
    } else if document.is_none() {
        say(HintKind::NotJson, None);
    }
    if body.windows(3).any(|bytes| bytes == "\u{fffd}".as_bytes()) {
        say(HintKind::ReplacementCharacters, None);
    }
}

/// Returns the sign that another program than the service wrote the body: the service writes no
/// white space, characters as they are, and numbers without an exponent.
fn written_again(document: &Node<'_>, body: &[u8]) -> Option<&'static str> {
    let is_written_by = |strings| {
        let style = Style {
            strings,
            ..Style::COMPACT
        };
        document
            .write(&style, body.len())
            .is_none_or(|written| written == body)
    };
    let is_float =
        |number: &[u8]| number.iter().any(|byte| b"eE".contains(byte)) || number.ends_with(b".0");
    if !is_written_by(None) {
        Some("it has white space between its values")
    } else if !is_written_by(Some(Writer::JavaScript)) {
        Some("it has escapes that the service does not write")
    } else if document.has_number(is_float) {
        Some("it has numbers such as 100.0 or 1e+20, as many programs write them")
    } else {
        None
    }
}

/// Returns the sign that another sender than this scheme's has sent it: a header that only the
/// other one has.
pub(super) fn of_another_scheme(delivery: &LoggedDelivery, scheme: &Scheme) -> Option<Hint> {
    let has = |row: &Scheme| delivery.header(row.signature_header()).is_some();
    let others = Scheme::ALL.into_iter().filter(|row| row != scheme);
    let other = others.filter(|_| !has(scheme)).find(has)?;
    Some(Hint {
        kind: HintKind::OtherScheme,
        detail: Some(format!("scheme {}", other.name())),
    })
}

fn of_signature(delivery: &LoggedDelivery, say: &mut impl FnMut(HintKind, Option<String>)) {
    let mut any = false;
    for (name, value) in &delivery.headers {
        if !name.contains("signature") {
            continue;
        }
        any = true;
        let digits = value.rsplit(|byte| !byte.is_ascii_hexdigit()).next();
        let digits = digits.map_or(0, <[u8]>::len);
        let other = matches!(digits, 32 | 40 | 56 | 96 | 128);
        if name == SIGNATURE && other {
            let detail = format!("{digits} hex digits in place of 64");
            say(HintKind::OtherAlgorithm, Some(detail));
        }
    }
    if !any {
        say(HintKind::NoSignature, None);
    }
}
