//! The known mistakes: their names, their descriptions and their repairs.

use std::fmt;

use serde::{Serialize, Serializer};

/// The part of a delivery that a mistake concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CauseGroup {
    /// The key that signed the delivery or verifies it.
    Secret,
    /// The bytes of the body.
    Body,
    /// The time that was signed in front of the body.
    Timestamp,
    /// The headers of timestamp and signature.
    Header,
    /// The parts of the request that are not signed: method, type, encoding, and the headers of the
    /// event.
    Request,
    /// The age of the delivery.
    Clock,
}

impl CauseGroup {
    /// A short name, in snake case. Stable.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Body => "body",
            Self::Timestamp => "timestamp",
            Self::Header => "header",
            Self::Request => "request",
            Self::Clock => "clock",
        }
    }
}

macro_rules! causes {
    ($($group:ident { $($kind:ident $name:literal: $what:literal, $fix:literal;)* })*) => {
        /// A known mistake.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum CauseKind {
            $($(#[doc = $what] #[doc = ""] #[doc = $fix] $kind,)*)*
        }

        impl CauseKind {
            /// All of them, group by group.
            pub const ALL: &'static [Self] = &[$($(Self::$kind,)*)*];

            /// A short name, in snake case. Stable.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $($(Self::$kind => $name,)*)* }
            }

            /// Returns the part of a delivery that the mistake concerns.
            #[must_use]
            pub fn group(self) -> CauseGroup {
                match self { $($(Self::$kind => CauseGroup::$group,)*)* }
            }

            /// Returns a description of the mistake, in one sentence. The wording may change.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self { $($(Self::$kind => $what,)*)* }
            }

            /// Returns the way to repair the mistake. The wording may change.
            #[must_use]
            pub fn fix(self) -> &'static str {
                match self { $($(Self::$kind => $fix,)*)* }
            }
        }
    };
}

causes! {
    Secret {
        SecretOfAnother "secret_of_another": "It was signed with another secret than the receiver's.",
            "Give the receiver the secret of the subscription that delivers here, or add it to its ring while it is being rotated.";
        SecretWhiteSpace "secret_white_space": "The secret was taken with white space, a line break or an invisible character in it.",
            "Paste the secret again without them, and write its file with `printf %s`, which adds none.";
        SecretBom "secret_bom": "The secret was taken with a byte order mark in front of it.",
            "Save its file without a byte order mark: as UTF-8, not as UTF-8 with BOM.";
        SecretQuoted "secret_quoted": "The secret was taken with quotes around it.",
            "Take the quotes away; some tools that read settings files keep them.";
        SecretPrefixMissing "secret_prefix_missing": "One side took the secret without its prefix `whsec_`.",
            "Use the whole text as it is shown: the prefix belongs to the key. Other services strip it, this one does not.";
        SecretPrefixRepeated "secret_prefix_repeated": "One side took the secret with its prefix `whsec_` twice.",
            "Use the text as it is shown, and put nothing in front.";
        SecretBase64Decoded "secret_base64_decoded": "It was signed with the secret decoded from base64, as Standard Webhooks does.",
            "Sign with the text itself as key, and use no library of Standard Webhooks: this service does not decode.";
        SecretHexDecoded "secret_hex_decoded": "It was signed with the secret decoded from hex.",
            "Sign with the text itself as key: this service does not decode.";
        SecretPaddingLost "secret_padding_lost": "The secret was taken without the `=` at its end.",
            "Paste the whole text again; a program that splits a line of settings at each `=` drops the last one.";
        SecretLineBreak "secret_line_break": "It was signed with a line break behind the secret.",
            "Write the secret's file with `printf %s`, or trim what is read from it: `echo` adds a line break.";
    }
    Body {
        BodyWrittenAgain "body_written_again": "The body was parsed and written again.",
            "Verify and send the very bytes that were signed, before anything parses them, and let no proxy or framework write the JSON again. In Python, sign and send one `body` and pass `data=body`, not `json=`.";
        BodyIndented "body_indented": "White space between the values of the body was added or removed.",
            "Verify and send the very bytes that were signed, and let nothing indent the JSON or write it again.";
        BodyLineBreakAdded "body_line_break_added": "The body has a line break at its end that was not signed.",
            "Pass the raw bytes on as they came; with curl, sign the file itself, without the line break that an editor or `echo` adds.";
        BodyLineBreakLost "body_line_break_lost": "A line break at the body's end was signed and is not there.",
            "Send with `--data-binary`, since curl's `-d @file` drops line breaks; sign with `printf %s`, since `echo` adds one.";
        BodyBomAdded "body_bom_added": "The body starts with a byte order mark that was not signed.",
            "Write and pass the body without a byte order mark.";
        BodyBomLost "body_bom_lost": "A byte order mark was signed and is not there.",
            "Pass the raw bytes on as they came; decoding them as text drops the mark.";
        BodyCharset "body_charset": "The body's text was converted between character sets.",
            "Pass the body on as bytes; a program that decodes it as Latin-1 or UTF-16 changes them.";
        BodyFormEncoded "body_form_encoded": "The body is percent-encoded, as a form sends it, and the signed body is not.",
            "Send it as `application/json`, with `--data-binary` and not `--data-urlencode`, and let no form parser at it.";
    }
    Timestamp {
        TimestampInMilliseconds "timestamp_in_milliseconds": "The time was signed in another unit than the header's: milliseconds against seconds.",
            "Take the time once, in whole seconds, and use that one text in the header and in what is signed.";
        TimestampOfAnotherTime "timestamp_of_another_time": "Another time was signed than the header's.",
            "Take the time once, and use that one text in the header and in what is signed; a proxy must not write the header anew.";
    }
    Header {
        HeaderUpperCase "header_upper_case": "The signature is written in upper-case hex.",
            "Write the 64 hex digits in lower case.";
        HeaderWithoutPrefix "header_without_prefix": "The signature is written without `sha256=` in front.",
            "Write `sha256=` and 64 hex digits.";
        HeaderRepeated "header_repeated": "A header is repeated.",
            "Send each `X-Service-` header once; often both a client's defaults and its caller set it, or a proxy adds a copy.";
        TimestampMissing "timestamp_missing": "The header `X-Service-Timestamp` is missing.",
            "Let the header through: proxies and test senders must pass all `X-Service-` headers on.";
        TimestampMalformed "timestamp_malformed": "The timestamp is not written as whole seconds in digits alone.",
            "Write Unix time in whole seconds: digits, without sign, point, quotes or white space.";
    }
    Request {
        RequestMethod "request_method": "The request's method is not POST.",
            "Send deliveries with POST; a redirect (301, 302, 303) makes a client repeat the request as GET.";
        RequestEncoding "request_encoding": "The request has a Content-Encoding, and a receiver takes none.",
            "Send the body as it is, and let no proxy compress requests.";
        RequestType "request_type": "The request's Content-Type is neither `application/json` nor one that ends in `+json`.",
            "Send `Content-Type: application/json`; curl's `-d` says that it is a form, unless `-H` names the type.";
        RequestTooLarge "request_too_large": "The body is larger than a receiver accepts by default.",
            "Raise `max_body`, if the service sends deliveries of this size.";
        EventUnusable "event_unusable": "The signed body is not a JSON object with an id and a type that can be used.",
            "Send an event: a JSON object whose `id` and `type` are texts of 1 to 256 bytes.";
        EventHeader "event_header": "An unsigned header names another event than the signed body.",
            "Send the id and the type of the body in the headers, or leave these headers out. For a proxy that rewrites them there is `.ignore_header_mismatch()`.";
    }
    Clock {
        ClockStale "clock_stale": "The signature is right, but the delivery is too old.",
            "Deliver sooner, or correct the clock of the machine that is wrong. To judge a recorded delivery, say when it was received.";
        ClockAhead "clock_ahead": "The signature is right, but the timestamp is in the future.",
            "Correct the clock of the machine that is wrong; let both follow NTP.";
        ClockTimeZone "clock_time_zone": "The signature is right, but the timestamp differs from the clock by the offset of a time zone, within some seconds.",
            "Take Unix time, which has no zone: some function was given a local time for UTC or the other way round.";
        ClockMilliseconds "clock_milliseconds": "The signature is right, but the timestamp is in a smaller unit than seconds.",
            "Write whole seconds: `Math.floor(Date.now() / 1000)`.";
        ClockRetry "clock_retry": "The signature is right, but as old as that of a retry that carries the timestamp of its first attempt.",
            "Sign each attempt anew. If the service itself sends this, widen the window to what its retries need, and keep deduplication on.";
    }
}

/// One mistake of a delivery, with its details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    kind: CauseKind,
    detail: Option<String>,
}

impl Cause {
    pub(super) fn new(kind: CauseKind) -> Self {
        Self { kind, detail: None }
    }

    /// The detail must hold no byte of a secret or a body.
    pub(super) fn with(kind: CauseKind, detail: impl Into<String>) -> Self {
        Self {
            kind,
            detail: Some(detail.into()),
        }
    }

    /// Returns the kind of the mistake.
    #[must_use]
    pub fn kind(&self) -> CauseKind {
        self.kind
    }

    /// Returns the details of this mistake: how far the clock is off, which separator, whose
    /// secret.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}

/// With name, group, description, details and repair.
impl Serialize for Cause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = self.kind;
        serializer.collect_map([
            ("name", Some(kind.name())),
            ("group", Some(kind.group().name())),
            ("what", Some(kind.description())),
            ("detail", self.detail()),
            ("fix", Some(kind.fix())),
        ])
    }
}

/// The description of the mistake, and its details.
impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.description())?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}
