//! Secrets as a receiver holds them: decoded, or with a byte order mark.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::{CauseKind, Explainer, Explanation, HintKind};

use super::mistakes::{NOW, mac};
use crate::says;

const BODY: &str = r#"{"id":"evt_1","type":"row.created"}"#;
const BYTES: &[u8] = b"\xfe\x01made-up-key\x80\xa0\xff";

/// Explains a delivery that was signed with one text, to a receiver that holds another.
fn explain(signed: &str, held: impl AsRef<[u8]>) -> Explanation {
    let mac = mac(signed.as_bytes(), format!("{NOW}.{BODY}").as_bytes());
    let headers = [
        ("x-service-timestamp", NOW.to_string()),
        (
            "x-service-signature",
            format!("sha256={}", hex::encode(mac)),
        ),
    ];
    let delivery = LoggedDelivery::new(UnixSeconds::new(NOW), headers, BODY);
    Explainer::new().secret("KEY", held).explain(&delivery)
}

fn of_secret(explanation: &Explanation) -> Vec<(CauseKind, Option<&str>)> {
    let causes = explanation.causes().iter();
    let causes = causes.filter(|cause| cause.kind().name().starts_with("secret"));
    causes.map(|cause| (cause.kind(), cause.detail())).collect()
}

// fault E6: a receiver holds the bytes that its secret decodes to, and no sign says so
#[test]
fn what_looks_like_a_decoded_secret_is_said_to_be() {
    let signed = format!("whsec_{}", STANDARD.encode(BYTES));
    let lossy = String::from_utf8_lossy(BYTES).into_owned();
    let looks_decoded = |held: &[u8]| {
        let explanation = explain(&signed, held);
        assert!(explanation.none_fits(), "{explanation}");
        let mut hints = explanation.hints().iter();
        hints.any(|hint| hint.kind() == HintKind::SecretLooksDecoded)
    };
    let behind_the_prefix = format!("whsec_{lossy}");
    for held in [
        lossy.as_bytes(),
        behind_the_prefix.as_bytes(),
        b"\xff\xfd\x80",
        "whsec_key\u{1}of\u{90}bytes".as_bytes(),
    ] {
        assert!(looks_decoded(held), "{held:?}");
    }
    let utf16: Vec<u8> = "whsec_made_up"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for held in [
        b"whsec_made_up_other\r\n".as_slice(),
        b"whsec_made_up_other\0",
        "whsec_made_up\u{200b} Gr\u{fc}n".as_bytes(),
        &utf16,
    ] {
        assert!(!looks_decoded(held), "{held:?}");
    }
}

// fault E8: a byte order mark in a secret's file is called white space, and pasting again repairs nothing
#[test]
fn a_byte_order_mark_in_front_of_a_secret_has_its_own_repair() {
    let signed = "whsec_made_up_for_this_test";
    let more = Some("and with white space or a line break");
    for (behind, detail) in [("", None), ("\r\n", more)] {
        let explanation = explain(signed, format!("\u{feff}{signed}{behind}"));
        assert_eq!(of_secret(&explanation), [(CauseKind::SecretBom, detail)]);
        let said = explanation.to_string();
        says(&said, "without a byte order mark");
    }
}
