//! Mistakes to plant: how each changes the configuration, the signed bytes, the received bytes, and the form of the headers.
//!
//! The signatures are ring's, so that nothing here shares code with the tested library.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::{CauseKind, Explainer, Explanation};
use ring::hmac;

pub(super) const NOW: i64 = 1_763_690_000;
pub(super) const SECRET: &str = "whsec_made_up_secret_of_the_mistakes";
/// Base64 and hex behind its prefix, so that it can be decoded either way: no text of `made_up_` can.
const DECODABLE: &str = "whsec_0123456789abcdef0123456789abcdef";
const OTHER: &str = "whsec_made_up_secret_of_another_one";
/// As the service writes it: compact, its own order of keys, characters as they are.
pub(super) const BODY: &str = r#"{"id":"evt_1","type":"row.created","createdAt":"2025-11-21T01:53:20Z","data":{"rowId":"r/1","properties":{"Größe":"5 < 6 é","n":1.50,"a":[1,{"b":2}]},"createdBy":{"id":"u","name":"Zoë"}}}"#;

type Kinds = &'static [&'static str];

/// A difference between the configured secret and the one that signs.
pub(super) struct SecretMistake {
    pub(super) name: &'static str,
    kinds: Kinds,
    configured: Vec<u8>,
    key: Vec<u8>,
}

/// A difference between the signed body and the received one.
pub(super) struct BodyMistake {
    pub(super) name: &'static str,
    kinds: Kinds,
    signed: Vec<u8>,
    arrived: Vec<u8>,
}

pub(super) struct SignedMistake {
    pub(super) name: &'static str,
    kinds: Kinds,
    /// With `T` for the timestamp, `S` for its first ten digits and `B` for the body.
    signed: &'static str,
    timestamp: &'static str,
}

pub(super) struct HeaderMistake {
    pub(super) name: &'static str,
    kinds: Kinds,
    headers: fn(&[u8]) -> Vec<(String, String)>,
}

/// The mistakes in a delivery: at most one of each group.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) secret: Option<&'static SecretMistake>,
    pub(super) body: Option<&'static BodyMistake>,
    pub(super) signed: Option<&'static SignedMistake>,
    pub(super) header: Option<&'static HeaderMistake>,
}

impl Case {
    pub(super) fn good() -> Self {
        Self {
            secret: None,
            body: None,
            signed: None,
            header: None,
        }
    }

    pub(super) fn name(&self) -> String {
        let names = [
            self.secret.map(|secret| secret.name),
            self.body.map(|body| body.name),
            self.signed.map(|signed| signed.name),
            self.header.map(|header| header.name),
        ];
        names.into_iter().flatten().collect::<Vec<_>>().join(" + ")
    }

    pub(super) fn planted(&self) -> BTreeSet<CauseKind> {
        let names = [
            self.secret.map(|secret| secret.kinds),
            self.body.map(|body| body.kinds),
            self.signed.map(|signed| signed.kinds),
            self.header.map(|header| header.kinds),
        ];
        names
            .into_iter()
            .flatten()
            .flatten()
            .map(|name| kind(name))
            .collect()
    }

    fn configured(&self) -> &[u8] {
        self.secret
            .map_or(SECRET.as_bytes(), |secret| &secret.configured)
    }

    fn key(&self) -> &[u8] {
        self.secret.map_or(SECRET.as_bytes(), |secret| &secret.key)
    }

    fn arrived(&self) -> &[u8] {
        self.body.map_or(BODY.as_bytes(), |body| &body.arrived)
    }

    fn signed_body(&self) -> &[u8] {
        self.body.map_or(BODY.as_bytes(), |body| &body.signed)
    }

    fn timestamp(&self) -> &str {
        self.signed.map_or("1763690000", |signed| signed.timestamp)
    }

    fn signed_string(&self) -> Vec<u8> {
        let template = self.signed.map_or("T.B", |signed| signed.signed);
        let mut out = Vec::new();
        for char in template.chars() {
            match char {
                'T' => out.extend_from_slice(self.timestamp().as_bytes()),
                'S' => out.extend_from_slice(&self.timestamp().as_bytes()[..10]),
                'B' => out.extend_from_slice(self.signed_body()),
                char => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        out
    }

    pub(super) fn delivery(&self) -> LoggedDelivery {
        let digest = mac(self.key(), &self.signed_string());
        let mut headers = match self.header {
            Some(header) => (header.headers)(&digest),
            None => signature(format!("sha256={}", hex::encode(&digest))),
        };
        let is_said = |name: &str| headers.iter().any(|(other, _)| other == name);
        if !is_said("x-service-timestamp") && !is_said("no-timestamp") {
            headers.push(("x-service-timestamp".into(), self.timestamp().into()));
        }
        headers.push(("x-service-event-id".into(), "evt_1".into()));
        headers.push(("x-service-webhook-id".into(), "wh_1".into()));
        let arrived = Bytes::copy_from_slice(self.arrived());
        LoggedDelivery::new(UnixSeconds::new(NOW + 2), headers, arrived)
    }

    pub(super) fn explain(&self) -> Explanation {
        Explainer::new()
            .secret("WEBHOOK_SECRET", self.configured())
            .other_secret("STAGING", OTHER)
            .explain(&self.delivery())
    }

    /// The MACs that would make this delivery pass, or one derived from it: over every body that it has, under every key, as hex
    /// and in base64, in lower case and without padding.
    pub(super) fn right_macs(&self) -> Vec<String> {
        let mut macs = Vec::new();
        let strings = [
            [self.timestamp().as_bytes(), b".", self.arrived()].concat(),
            [self.timestamp().as_bytes(), b".", self.signed_body()].concat(),
            [b"1763690000.", self.signed_body()].concat(),
            self.signed_string(),
        ];
        for key in [
            SECRET.as_bytes(),
            self.configured(),
            self.key(),
            OTHER.as_bytes(),
        ] {
            for string in &strings {
                let mac = mac(key, string);
                let base64 = STANDARD.encode(&mac).to_lowercase();
                let url_safe = URL_SAFE_NO_PAD.encode(&mac).to_lowercase();
                // A part of it would be half a leak.
                macs.extend([
                    hex::encode(&mac)[..16].to_owned(),
                    base64[..16].to_owned(),
                    url_safe[..16].to_owned(),
                ]);
                macs.push(
                    mac[..4]
                        .iter()
                        .map(|byte| format!("{byte}"))
                        .collect::<Vec<_>>()
                        .join(", "),
                );
            }
        }
        macs
    }
}

pub(super) fn mac(key: &[u8], message: &[u8]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, message).as_ref().to_vec()
}

fn kind(name: &str) -> CauseKind {
    let known = CauseKind::ALL.iter().find(|kind| kind.name() == name);
    *known.unwrap_or_else(|| panic!("no cause is named {name}"))
}

fn signature(value: String) -> Vec<(String, String)> {
    vec![("x-service-signature".into(), value)]
}

pub(super) static SECRETS: LazyLock<Vec<SecretMistake>> = LazyLock::new(|| {
    let random = SECRET.strip_prefix("whsec_").unwrap();
    let digits = DECODABLE.strip_prefix("whsec_").unwrap();
    let mistake =
        |name, kind: &'static [&'static str], configured: &[u8], key: &[u8]| SecretMistake {
            name,
            kinds: kind,
            configured: configured.to_vec(),
            key: key.to_vec(),
        };
    let configured =
        |name, kinds, text: &str| mistake(name, kinds, text.as_bytes(), SECRET.as_bytes());
    let signed = |name, kinds, key: &[u8]| mistake(name, kinds, SECRET.as_bytes(), key);
    vec![
        configured(
            "space behind",
            &["secret_white_space"],
            &format!("{SECRET} "),
        ),
        configured(
            "line break behind",
            &["secret_white_space"],
            &format!("{SECRET}\n"),
        ),
        configured(
            "line break within",
            &["secret_white_space"],
            &format!("{}\r\n{}", &SECRET[..20], &SECRET[20..]),
        ),
        configured(
            "BOM in front",
            &["secret_bom"],
            &format!("\u{feff}{SECRET}"),
        ),
        configured(
            "zero width space",
            &["secret_white_space"],
            &format!("{SECRET}\u{200b}"),
        ),
        configured(
            "a written line break",
            &["secret_white_space"],
            &format!("{SECRET}\\n"),
        ),
        configured("quotes", &["secret_quoted"], &format!("\"{SECRET}\"")),
        configured("single quotes", &["secret_quoted"], &format!("'{SECRET}'")),
        configured("one quote", &["secret_quoted"], &format!("{SECRET}\"")),
        configured("curly quotes", &["secret_quoted"], &format!("“{SECRET}”")),
        configured(
            "quotes in white space",
            &["secret_white_space", "secret_quoted"],
            &format!(" \"{SECRET}\"\n"),
        ),
        configured("no prefix", &["secret_prefix_missing"], random),
        configured(
            "prefix twice",
            &["secret_prefix_repeated"],
            &format!("whsec_{SECRET}"),
        ),
        mistake(
            "the last sign lost",
            &["secret_padding_lost"],
            b"whsec_made_up_with_one_sign_at_its_end0000000",
            b"whsec_made_up_with_one_sign_at_its_end0000000=",
        ),
        mistake(
            "both last signs lost",
            &["secret_padding_lost"],
            b"whsec_made_up_with_two_signs_at_its_end_",
            b"whsec_made_up_with_two_signs_at_its_end_==",
        ),
        signed(
            "prefix stripped",
            &["secret_prefix_missing"],
            random.as_bytes(),
        ),
        signed(
            "prefix added",
            &["secret_prefix_repeated"],
            format!("whsec_{SECRET}").as_bytes(),
        ),
        mistake(
            "decoded from base64",
            &["secret_base64_decoded"],
            DECODABLE.as_bytes(),
            &STANDARD.decode(digits).unwrap(),
        ),
        mistake(
            "decoded from hex",
            &["secret_hex_decoded"],
            DECODABLE.as_bytes(),
            &hex::decode(digits).unwrap(),
        ),
        mistake(
            "decoded whole",
            &["secret_base64_decoded"],
            b"bWFkZS11cC1rZXktb2YtYnl0ZXM_",
            b"made-up-key-of-bytes?",
        ),
        signed(
            "echoed",
            &["secret_line_break"],
            format!("{SECRET}\n").as_bytes(),
        ),
        signed(
            "echoed on Windows",
            &["secret_line_break"],
            format!("{SECRET}\r\n").as_bytes(),
        ),
        signed("another's", &["secret_of_another"], OTHER.as_bytes()),
    ]
});

/// The output of python3, PHP, Go and others for `BODY`, written by hand here.
const SPACED: &str = r#"{"id": "evt_1", "type": "row.created", "createdAt": "2025-11-21T01:53:20Z", "data": {"rowId": "r/1", "properties": {"Größe": "5 < 6 é", "n": 1.50, "a": [1, {"b": 2}]}, "createdBy": {"id": "u", "name": "Zoë"}}}"#;
const SORTED: &str = r#"{"createdAt":"2025-11-21T01:53:20Z","data":{"createdBy":{"id":"u","name":"Zoë"},"properties":{"Größe":"5 < 6 é","a":[1,{"b":2}],"n":1.50},"rowId":"r/1"},"id":"evt_1","type":"row.created"}"#;
/// The keys of the service's own in another order; those of the properties as they are, which no one could put back.
const REORDERED: &str = r#"{"createdAt":"2025-11-21T01:53:20Z","data":{"createdBy":{"id":"u","name":"Zoë"},"properties":{"Größe":"5 < 6 é","n":1.50,"a":[1,{"b":2}]},"rowId":"r/1"},"id":"evt_1","type":"row.created"}"#;

fn pretty(indent: &str) -> String {
    let lines = [
        (0, "{"),
        (1, r#""id": "evt_1","#),
        (1, r#""type": "row.created","#),
        (1, r#""createdAt": "2025-11-21T01:53:20Z","#),
        (1, r#""data": {"#),
        (2, r#""rowId": "r/1","#),
        (2, r#""properties": {"#),
        (3, r#""Größe": "5 < 6 é","#),
        (3, r#""n": 1.50,"#),
        (3, r#""a": ["#),
        (4, "1,"),
        (4, "{"),
        (5, r#""b": 2"#),
        (4, "}"),
        (3, "]"),
        (2, "},"),
        (2, r#""createdBy": {"#),
        (3, r#""id": "u","#),
        (3, r#""name": "Zoë""#),
        (2, "}"),
        (1, "}"),
        (0, "}"),
    ];
    let lines = lines.map(|(depth, line)| format!("{}{line}", indent.repeat(depth)));
    lines.join("\n")
}

pub(super) static BODIES: LazyLock<Vec<BodyMistake>> = LazyLock::new(|| {
    let mistake =
        |name, kinds: &'static [&'static str], signed: &[u8], arrived: &[u8]| BodyMistake {
            name,
            kinds,
            signed: signed.to_vec(),
            arrived: arrived.to_vec(),
        };
    let arrived = |name, kinds, body: &[u8]| mistake(name, kinds, BODY.as_bytes(), body);
    let signed = |name, kinds, body: &[u8]| mistake(name, kinds, body, BODY.as_bytes());
    let replaced = |from: &str, to: &str| {
        assert!(BODY.contains(from));
        BODY.replace(from, to).into_bytes()
    };
    let escaped = |upper: bool| {
        let escape = |char: char| match (u32::from(char), upper) {
            (..0x80, _) => char.to_string(),
            (code, false) => format!("\\u{code:04x}"),
            (code, true) => format!("\\u{code:04X}"),
        };
        BODY.chars().map(escape).collect::<String>().into_bytes()
    };
    let lines = pretty("  ");
    let percent: String = BODY
        .bytes()
        .map(|byte| match byte {
            b' ' => "+".into(),
            byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let latin = |text: &str| {
        text.chars()
            .map(|char| u8::try_from(char).unwrap())
            .collect::<Vec<u8>>()
    };
    let taken_for_latin: String = BODY.bytes().map(char::from).collect();
    let utf16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = BODY.as_bytes();
    vec![
        arrived("pretty by 2", &["body_indented"], lines.as_bytes()),
        arrived("pretty by 4", &["body_indented"], pretty("    ").as_bytes()),
        arrived(
            "pretty by tabs and a line break",
            &["body_indented"],
            (pretty("\t") + "\n").as_bytes(),
        ),
        arrived("spaced", &["body_indented"], SPACED.as_bytes()),
        signed("pretty by 2", &["body_indented"], lines.as_bytes()),
        signed("pretty by 4", &["body_indented"], pretty("    ").as_bytes()),
        signed(
            "pretty by tabs",
            &["body_indented"],
            pretty("\t").as_bytes(),
        ),
        signed("spaced", &["body_indented"], SPACED.as_bytes()),
        signed("sorted", &["body_written_again"], SORTED.as_bytes()),
        arrived("reordered", &["body_written_again"], REORDERED.as_bytes()),
        arrived(
            "line break added",
            &["body_line_break_added"],
            &[bytes, b"\n"].concat(),
        ),
        arrived(
            "CRLF added",
            &["body_line_break_added"],
            &[bytes, b"\r\n"].concat(),
        ),
        signed(
            "line break lost",
            &["body_line_break_lost"],
            &[bytes, b"\n"].concat(),
        ),
        signed(
            "CRLF lost",
            &["body_line_break_lost"],
            &[bytes, b"\r\n"].concat(),
        ),
        arrived(
            "BOM added",
            &["body_bom_added"],
            &[b"\xef\xbb\xbf", bytes].concat(),
        ),
        signed(
            "BOM lost",
            &["body_bom_lost"],
            &[b"\xef\xbb\xbf", bytes].concat(),
        ),
        arrived(
            "slashes escaped",
            &["body_written_again"],
            &replaced("r/1", "r\\/1"),
        ),
        arrived(
            "characters escaped",
            &["body_written_again"],
            &escaped(false),
        ),
        arrived(
            "characters escaped in upper case",
            &["body_written_again"],
            &escaped(true),
        ),
        signed("escapes lost", &["body_written_again"], &escaped(false)),
        arrived(
            "escaped for HTML",
            &["body_written_again"],
            &replaced("<", "\\u003c"),
        ),
        signed(
            "escapes for HTML lost",
            &["body_written_again"],
            &replaced("<", "\\u003c"),
        ),
        mistake(
            "escapes of control characters",
            &["body_written_again"],
            &replaced("u\"", "u\\n\""),
            &replaced("u\"", "u\\u000a\""),
        ),
        arrived(
            "PHP",
            &["body_written_again"],
            String::from_utf8(escaped(false))
                .unwrap()
                .replace('/', "\\/")
                .as_bytes(),
        ),
        signed(
            "1.50 made 1.5",
            &["body_written_again"],
            &replaced("1.50", "1.5"),
        ),
        mistake(
            "1e3 made 1000",
            &["body_written_again"],
            &replaced("1.50", "1000"),
            &replaced("1.50", "1e3"),
        ),
        arrived(
            "a form's value",
            &["body_form_encoded"],
            format!("payload={percent}").as_bytes(),
        ),
        arrived(
            "a form's name",
            &["body_form_encoded"],
            format!("{percent}=").as_bytes(),
        ),
        arrived("Latin-1", &["body_charset"], &latin(BODY)),
        arrived(
            "taken for Latin-1",
            &["body_charset"],
            taken_for_latin.as_bytes(),
        ),
        arrived("UTF-16", &["body_charset"], &utf16),
    ]
});

pub(super) static SIGNED: LazyLock<Vec<SignedMistake>> = LazyLock::new(|| {
    let mistake = |name, kind: Kinds, signed| SignedMistake {
        name,
        kinds: kind,
        signed,
        timestamp: "1763690000",
    };
    vec![
        mistake("milliseconds", &["timestamp_in_milliseconds"], "T000.B"),
        SignedMistake {
            timestamp: "1763690000123",
            ..mistake(
                "seconds",
                &["timestamp_in_milliseconds", "clock_milliseconds"],
                "S.B",
            )
        },
        mistake(
            "another time",
            &["timestamp_of_another_time"],
            "1763690007.B",
        ),
        SignedMistake {
            timestamp: "1763690000.25",
            ..mistake("a fraction", &["timestamp_malformed"], "T.B")
        },
    ]
});

pub(super) static HEADERS: LazyLock<Vec<HeaderMistake>> = LazyLock::new(|| {
    let mistake = |name, kinds: Kinds, headers| HeaderMistake {
        name,
        kinds,
        headers,
    };
    vec![
        mistake("upper case", &["header_upper_case"], |mac| {
            signature(format!("sha256={}", hex::encode_upper(mac)))
        }),
        mistake("no prefix", &["header_without_prefix"], |mac| {
            signature(hex::encode(mac))
        }),
        mistake("doubled", &["header_repeated"], |mac| {
            let header = signature(format!("sha256={}", hex::encode(mac)));
            [header.clone(), header].concat()
        }),
        mistake("doubled, second right", &["header_repeated"], |mac| {
            let wrong = signature(format!("sha256={}", "0".repeat(64)));
            [wrong, signature(format!("sha256={}", hex::encode(mac)))].concat()
        }),
        mistake("timestamp doubled", &["header_repeated"], |mac| {
            stamped(mac, &["1763690000", "1763690000"])
        }),
        mistake(
            "timestamp doubled, second right",
            &["header_repeated"],
            |mac| stamped(mac, &["1763690001", "1763690000"]),
        ),
        mistake(NO_TIMESTAMP, &["timestamp_missing"], |mac| {
            stamped(mac, &[])
        }),
    ]
});

/// Its time is looked for under the right signed string alone.
pub(super) const NO_TIMESTAMP: &str = "no timestamp's header";

fn stamped(mac: &[u8], timestamps: &[&str]) -> Vec<(String, String)> {
    let mut headers = signature(format!("sha256={}", hex::encode(mac)));
    for timestamp in timestamps {
        headers.push(("x-service-timestamp".into(), (*timestamp).into()));
    }
    if timestamps.is_empty() {
        headers.push(("no-timestamp".into(), String::new()));
    }
    headers
}
