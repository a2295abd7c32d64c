//! Mistakes to plant: how each changes the configuration, the signed bytes, the received bytes, and
//! the form of the headers.
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
/// Base64 and hex behind its prefix, so that it can be decoded either way: no text of `made_up_`
/// can.
const DECODABLE: &str = "whsec_0123456789abcdef0123456789abcdef";
const OTHER: &str = "whsec_made_up_secret_of_another_one";
/// As the service writes it: compact, its own order of keys, characters as they are.
pub(super) const BODY: &str = r#"{"id":"evt_1","type":"row.created","createdAt":"2025-11-21T01:53:20Z","data":{"rowId":"r/1","properties":{"Größe":"5 < 6 é","n":1.50,"a":[1,{"b":2}]},"createdBy":{"id":"u","name":"Zoë"}}}"#;

/// The names of causes, apart by white space.
type Kinds = &'static str;

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

    pub(super) fn of_secret(secret: &'static SecretMistake) -> Self {
        Self {
            secret: Some(secret),
            ..Self::good()
        }
    }

    pub(super) fn of_body(body: &'static BodyMistake) -> Self {
        Self {
            body: Some(body),
            ..Self::good()
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
        let names = names.into_iter().flatten();
        names.flat_map(str::split_whitespace).map(kind).collect()
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

    /// The MACs that would make this delivery pass, or one derived from it: over every body that it
    /// has, under every key, as hex and in base64, in lower case and without padding.
    pub(super) fn right_macs(&self) -> Vec<String> {
        let mut macs = Vec::new();
        let strings = [
            [self.timestamp().as_bytes(), b".", self.arrived()].concat(),
            [self.timestamp().as_bytes(), b".", self.signed_body()].concat(),
            [b"1763690000.", self.signed_body()].concat(),
            self.signed_string(),
        ];
        let (secret, other) = (SECRET.as_bytes(), OTHER.as_bytes());
        for key in [secret, self.configured(), self.key(), other] {
            for string in &strings {
                let mac = mac(key, string);
                let base64 = STANDARD.encode(&mac).to_lowercase();
                let url_safe = URL_SAFE_NO_PAD.encode(&mac).to_lowercase();
                // A part of it would be half a leak.
                let parts = [hex::encode(&mac), base64, url_safe];
                macs.extend(parts.map(|part| part[..16].to_owned()));
                let bytes: Vec<_> = mac[..4].iter().map(u8::to_string).collect();
                macs.push(bytes.join(", "));
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
    let mistake = |kinds, name, configured: &[u8], key: &[u8]| SecretMistake {
        name,
        kinds,
        configured: configured.to_vec(),
        key: key.to_vec(),
    };
    let configured =
        |kinds, name, text: &str| mistake(kinds, name, text.as_bytes(), SECRET.as_bytes());
    let space = |name, text: String| configured("secret_white_space", name, &text);
    let quoted = |name, text: String| configured("secret_quoted", name, &text);
    let lost = |name, text: &str, key: &str| {
        mistake("secret_padding_lost", name, text.as_bytes(), key.as_bytes())
    };
    let signed = |kinds, name, key: &str| mistake(kinds, name, SECRET.as_bytes(), key.as_bytes());
    let decoded = |kinds, name, key: &[u8]| mistake(kinds, name, DECODABLE.as_bytes(), key);
    let (begin, end) = SECRET.split_at(20);
    let (line, crlf) = (format!("{SECRET}\n"), format!("{SECRET}\r\n"));
    let (bom, twice) = (format!("\u{feff}{SECRET}"), format!("whsec_{SECRET}"));
    let both = format!(" \"{SECRET}\"\n");
    let (base64, hex) = (
        STANDARD.decode(digits).unwrap(),
        hex::decode(digits).unwrap(),
    );
    let [one, two] = [
        "whsec_made_up_with_one_sign_at_its_end0000000",
        "whsec_made_up_with_two_signs_at_its_end_",
    ];
    let bytes = (b"bWFkZS11cC1rZXktb2YtYnl0ZXM_", b"made-up-key-of-bytes?");
    vec![
        space("space behind", format!("{SECRET} ")),
        space("line break behind", line.clone()),
        space("line break within", format!("{begin}\r\n{end}")),
        configured("secret_bom", "BOM in front", &bom),
        space("zero width space", format!("{SECRET}\u{200b}")),
        space("a written line break", format!("{SECRET}\\n")),
        quoted("quotes", format!("\"{SECRET}\"")),
        quoted("single quotes", format!("'{SECRET}'")),
        quoted("one quote", format!("{SECRET}\"")),
        quoted("curly quotes", format!("“{SECRET}”")),
        configured("secret_white_space secret_quoted", "quotes in space", &both),
        configured("secret_prefix_missing", "no prefix", random),
        configured("secret_prefix_repeated", "prefix twice", &twice),
        lost("the last sign lost", one, &format!("{one}=")),
        lost("both last signs lost", two, &format!("{two}==")),
        signed("secret_prefix_missing", "prefix stripped", random),
        signed("secret_prefix_repeated", "prefix added", &twice),
        decoded("secret_base64_decoded", "decoded from base64", &base64),
        decoded("secret_hex_decoded", "decoded from hex", &hex),
        mistake("secret_base64_decoded", "decoded whole", bytes.0, bytes.1),
        signed("secret_line_break", "echoed", &line),
        signed("secret_line_break", "echoed on Windows", &crlf),
        signed("secret_of_another", "another's", OTHER),
    ]
});

/// The output of python3, PHP, Go and others for `BODY`, written by hand here.
const SPACED: &str = r#"{"id": "evt_1", "type": "row.created", "createdAt": "2025-11-21T01:53:20Z", "data": {"rowId": "r/1", "properties": {"Größe": "5 < 6 é", "n": 1.50, "a": [1, {"b": 2}]}, "createdBy": {"id": "u", "name": "Zoë"}}}"#;
const SORTED: &str = r#"{"createdAt":"2025-11-21T01:53:20Z","data":{"createdBy":{"id":"u","name":"Zoë"},"properties":{"Größe":"5 < 6 é","a":[1,{"b":2}],"n":1.50},"rowId":"r/1"},"id":"evt_1","type":"row.created"}"#;
/// The keys of the service's own in another order; those of the properties as they are, which no
/// one could put back.
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
    let mistake = |kinds, name, signed: &[u8], arrived: &[u8]| BodyMistake {
        name,
        kinds,
        signed: signed.to_vec(),
        arrived: arrived.to_vec(),
    };
    let arrived = |kinds, name, body: &[u8]| mistake(kinds, name, BODY.as_bytes(), body);
    let signed = |kinds, name, body: &[u8]| mistake(kinds, name, body, BODY.as_bytes());
    const INDENTED: Kinds = "body_indented";
    const AGAIN: Kinds = "body_written_again";
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
    let percent = |byte| match byte {
        b' ' => "+".into(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    let percent: String = BODY.bytes().map(percent).collect();
    let latin = BODY.chars().map(|char| u8::try_from(char).unwrap());
    let latin: Vec<u8> = latin.collect();
    let taken_for_latin: String = BODY.bytes().map(char::from).collect();
    let utf16: Vec<u8> = BODY.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let bytes = BODY.as_bytes();
    let [line, crlf] = [&b"\n"[..], b"\r\n"].map(|end| [bytes, end].concat());
    let bom = [b"\xef\xbb\xbf", bytes].concat();
    let [by_4, by_tabs] = ["    ", "\t"].map(pretty);
    let (escapes, upper, html) = (escaped(false), escaped(true), replaced("<", "\\u003c"));
    let php = String::from_utf8(escapes.clone())
        .unwrap()
        .replace('/', "\\/");
    let (control, code) = (replaced("u\"", "u\\n\""), replaced("u\"", "u\\u000a\""));
    let (whole, power) = (replaced("1.50", "1000"), replaced("1.50", "1e3"));
    let (value, name) = (format!("payload={percent}"), format!("{percent}="));
    vec![
        arrived(INDENTED, "pretty by 2", lines.as_bytes()),
        arrived(INDENTED, "pretty by 4", by_4.as_bytes()),
        arrived(
            INDENTED,
            "tabs and a line break",
            (by_tabs.clone() + "\n").as_bytes(),
        ),
        arrived(INDENTED, "spaced", SPACED.as_bytes()),
        signed(INDENTED, "pretty by 2", lines.as_bytes()),
        signed(INDENTED, "pretty by 4", by_4.as_bytes()),
        signed(INDENTED, "pretty by tabs", by_tabs.as_bytes()),
        signed(INDENTED, "spaced", SPACED.as_bytes()),
        signed(AGAIN, "sorted", SORTED.as_bytes()),
        arrived(AGAIN, "reordered", REORDERED.as_bytes()),
        arrived("body_line_break_added", "line break added", &line),
        arrived("body_line_break_added", "CRLF added", &crlf),
        signed("body_line_break_lost", "line break lost", &line),
        signed("body_line_break_lost", "CRLF lost", &crlf),
        arrived("body_bom_added", "BOM added", &bom),
        signed("body_bom_lost", "BOM lost", &bom),
        arrived(AGAIN, "slashes escaped", &replaced("r/1", "r\\/1")),
        arrived(AGAIN, "characters escaped", &escapes),
        arrived(AGAIN, "characters escaped in upper case", &upper),
        signed(AGAIN, "escapes lost", &escapes),
        arrived(AGAIN, "escaped for HTML", &html),
        signed(AGAIN, "escapes for HTML lost", &html),
        mistake(AGAIN, "escapes of control characters", &control, &code),
        arrived(AGAIN, "PHP", php.as_bytes()),
        signed(AGAIN, "1.50 made 1.5", &replaced("1.50", "1.5")),
        mistake(AGAIN, "1e3 made 1000", &whole, &power),
        arrived("body_form_encoded", "a form's value", value.as_bytes()),
        arrived("body_form_encoded", "a form's name", name.as_bytes()),
        arrived("body_charset", "Latin-1", &latin),
        arrived(
            "body_charset",
            "taken for Latin-1",
            taken_for_latin.as_bytes(),
        ),
        arrived("body_charset", "UTF-16", &utf16),
    ]
});

pub(super) static SIGNED: LazyLock<Vec<SignedMistake>> = LazyLock::new(|| {
    let mistake = |kinds, name, signed, timestamp| SignedMistake {
        name,
        kinds,
        signed,
        timestamp,
    };
    const NOW: &str = "1763690000";
    const MILLISECONDS: Kinds = "timestamp_in_milliseconds clock_milliseconds";
    vec![
        mistake("timestamp_in_milliseconds", "milliseconds", "T000.B", NOW),
        mistake(MILLISECONDS, "seconds", "S.B", "1763690000123"),
        mistake(
            "timestamp_of_another_time",
            "another time",
            "1763690007.B",
            NOW,
        ),
        mistake("timestamp_malformed", "a fraction", "T.B", "1763690000.25"),
    ]
});

pub(super) static HEADERS: LazyLock<Vec<HeaderMistake>> = LazyLock::new(|| {
    let mistake = |kinds, name, headers| HeaderMistake {
        name,
        kinds,
        headers,
    };
    vec![
        mistake("header_upper_case", "upper case", |mac| {
            signature(format!("sha256={}", hex::encode_upper(mac)))
        }),
        mistake("header_without_prefix", "no prefix", |mac| {
            signature(hex::encode(mac))
        }),
        mistake("header_repeated", "doubled", |mac| {
            let header = signature(format!("sha256={}", hex::encode(mac)));
            [header.clone(), header].concat()
        }),
        mistake("header_repeated", "doubled, second right", |mac| {
            let wrong = signature(format!("sha256={}", "0".repeat(64)));
            [wrong, signature(format!("sha256={}", hex::encode(mac)))].concat()
        }),
        mistake("header_repeated", "timestamp doubled", |mac| {
            stamped(mac, &["1763690000", "1763690000"])
        }),
        mistake(
            "header_repeated",
            "timestamp doubled, second right",
            |mac| stamped(mac, &["1763690001", "1763690000"]),
        ),
        mistake("timestamp_missing", NO_TIMESTAMP, |mac| stamped(mac, &[])),
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
