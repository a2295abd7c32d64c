//! One body, as other programs write it once they have parsed it. The outputs are those of the
//! programs themselves: Python 3.11, PHP 8.2, Ruby 3.1, Go 1.19, Jackson 2.14, Gson 2.10; the
//! output of .NET was written by hand, by its rules.

use std::collections::BTreeSet;

use hookgate_testing::explain::{CauseKind, Explainer, Hint, HintKind};

use super::mistakes::{NOW, SECRET};
use super::{arrived, explainer, hints_at, kinds, signed_at};
use crate::says;

fn signed() -> String {
    r#"{"id":"evt_1","type":"row.created","data":{"rowId":"r/1","properties":{"Größe":"5 < 6 & \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":12345678.5,"Max":100,"Count":3}}}"#
        .replace("DEL", "\u{7f}")
}

const BEGIN: &str = r#"{"id":"evt_1","type":"row.created","data":{"rowId":"#;

// fault E1: a body was parsed and written again, and neither an explanation fits nor a sign says so
#[test]
fn a_body_is_found_by_whatever_program_it_was_written_again() {
    for (writer, arrived) in [
        (
            "Python, json.dumps(json.loads(body), separators=(',', ':'))",
            r#""r/1","properties":{"Gr\u00f6\u00dfe":"5 < 6 & \"\u00e9\"\ud83e\uddfe\n+","Del":"\u007f","Total":12.5,"Big":12345678.5,"Max":100.0,"Count":3}}}"#,
        ),
        (
            "PHP, json_encode(json_decode($body))",
            r#""r\/1","properties":{"Gr\u00f6\u00dfe":"5 < 6 & \"\u00e9\"\ud83e\uddfe\n+","Del":"DEL","Total":12.5,"Big":12345678.5,"Max":100,"Count":3}}}"#,
        ),
        (
            "Ruby on Rails, to_json",
            r#""r/1","properties":{"Größe":"5 \u003c 6 \u0026 \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":12345678.5,"Max":100.0,"Count":3}}}"#,
        ),
        (
            "Go, json.NewEncoder(w).Encode(json.RawMessage(body))",
            concat!(
                r#""r/1","properties":{"Größe":"5 \u003c 6 \u0026 \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":12345678.5,"Max":100,"Count":3}}}"#,
                "\n"
            ),
        ),
        (
            "Jackson, a tree",
            r#""r/1","properties":{"Größe":"5 < 6 & \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":1.23456785E7,"Max":100.0,"Count":3}}}"#,
        ),
        (
            "Jackson, BigDecimal",
            r#""r/1","properties":{"Größe":"5 < 6 & \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":12345678.5,"Max":1E+2,"Count":3}}}"#,
        ),
        (
            "Gson, a map",
            r#""r/1","properties":{"Größe":"5 \u003c 6 \u0026 \"é\"🧾\n+","Del":"DEL","Total":12.5,"Big":1.23456785E7,"Max":100.0,"Count":3.0}}}"#,
        ),
        (
            ".NET, JsonSerializer.Serialize(document)",
            r#""r/1","properties":{"Gr\u00F6\u00DFe":"5 \u003C 6 \u0026 \u0022\u00E9\u0022\uD83E\uDDFE\n\u002B","Del":"\u007F","Total":12.5,"Big":12345678.5,"Max":100,"Count":3}}}"#,
        ),
    ] {
        let arrived = format!("{BEGIN}{}", arrived.replace("DEL", "\u{7f}"));
        let explanation = explainer().explain(&super::arrived(&signed(), arrived));
        let expected = BTreeSet::from([CauseKind::BodyWrittenAgain]);
        assert_eq!(kinds(&explanation), expected, "{writer}: {explanation}");
    }
}

/// A sender that signs what one library writes and sends what another one does.
#[test]
fn a_body_that_was_signed_in_a_programs_form_is_found_with_its_name() {
    for (writer, form) in [
        (
            "Python's json.dumps",
            r#"{"id": "evt_1", "type": "a", "data": {"t": "\u00e9 / < ' \ud83e\uddfe", "n": 12345678.5, "m": 1.0}}"#,
        ),
        (
            "PHP's json_encode",
            r#"{"id":"evt_1","type":"a","data":{"t":"\u00e9 \/ < ' \ud83e\uddfe","n":12345678.5,"m":1}}"#,
        ),
        (
            "Go's json.Marshal",
            r#"{"data":{"m":1,"n":12345678.5,"t":"é / \u003c ' 🧾"},"id":"evt_1","type":"a"}"#,
        ),
        (
            "Java's Gson",
            r#"{"id":"evt_1","type":"a","data":{"t":"é / \u003c \u0027 🧾","n":1.23456785E7,"m":1.0}}"#,
        ),
    ] {
        let sent = r#"{"id":"evt_1","type":"a","data":{"t":"é / < ' 🧾","n":12345678.5,"m":1.0}}"#;
        let explanation = explainer().explain(&arrived(form, sent));
        let expected = BTreeSet::from([CauseKind::BodyWrittenAgain]);
        assert_eq!(kinds(&explanation), expected, "{writer}: {explanation}");
        says(&explanation, writer);
    }
}

/// 41.10: a sender of tests writes its JSON as it likes, and its mistake is another one.
#[test]
fn a_body_of_pythons_json_dumps_is_not_called_written_again_beside_a_proven_cause() {
    let body = r#"{"id": "evt_1", "type": "row.created", "n": 1.0}"#;
    let unproven = |delivery: &hookgate_record::LoggedDelivery, secret: &str| {
        let explanation = Explainer::new().secret("KEY", secret).explain(delivery);
        let names = explanation.hints().iter().map(|hint| hint.kind().name());
        let names: Vec<_> = names.collect();
        let told = explanation.to_string();
        assert!(!told.contains("written again"), "{told}");
        names
    };
    let good = signed_at(NOW, body.as_bytes());
    assert_eq!(unproven(&good, &format!("{SECRET}\n")), [""; 0]);
    let of_key = unproven(&good, "tk_live_0123456789abcdef");
    assert_eq!(of_key, ["secret_refused"]);
    let mut unsigned = good.clone();
    let headers = &mut unsigned.headers;
    headers.retain(|(name, _)| name != "x-service-signature");
    assert_eq!(unproven(&unsigned, SECRET), ["no_signature"]);
    let mut stale = good.clone();
    stale.received_at = hookgate::clock::UnixSeconds::new(NOW + 400);
    let of_stale = unproven(&stale, "whsec_made_up_secret_of_another_one");
    assert_eq!(of_stale, ["clock"]);
}

/// With numbers that no way gives back, so that nothing fits.
// fault E1: a body was parsed and written again, and neither an explanation fits nor a sign says so
#[test]
fn where_no_variant_fits_the_form_of_the_body_is_said() {
    const SIGNED: &str = r#"{"id":"evt_1","n":1.2345670}"#;
    for (sign, arrived) in [
        ("white space", r#"{"id": "evt_1","n":1}"#),
        ("escapes", r#"{"id":"evt_1","n":"\u00e9"}"#),
        ("escapes", r#"{"id":"evt_1","n":"a\/b"}"#),
        ("escapes", r#"{"id":"evt_1","n":"\u003c"}"#),
        ("100.0", r#"{"id":"evt_1","n":5.0}"#),
        ("1e+20", r#"{"id":"evt_1","n":1.5E7}"#),
    ] {
        let explanation = explainer().explain(&super::arrived(SIGNED, arrived));
        assert!(explanation.none_fits(), "{explanation}");
        let mut hints = explanation.hints().iter();
        let hint = hints.find(|hint| hint.kind() == HintKind::WrittenAgain);
        let hint = hint.unwrap_or_else(|| panic!("{arrived}: {explanation}"));
        assert!(
            hint.to_string()
                .starts_with("This body looks written again")
        );
        says(hint.detail().unwrap(), sign);
    }
    // The service's own form is not a sign.
    let own = arrived(SIGNED, r#"{"id":"evt_1","n":12.50,"t":"Größe/\"\n"}"#);
    let explanation = explainer().explain(&own);
    assert!(!hints_at(&explanation, HintKind::WrittenAgain));
}

/// Nothing in a body shows how many zeros its numbers had.
// fault E7: numbers of a body lost zeros, and no sign says so
#[test]
fn numbers_that_may_have_lost_their_zeros_are_reported_where_nothing_fits() {
    let hint = |arrived: &'static str| {
        let delivery = super::arrived(r#"{"id":"evt_1","a":1.500}"#, arrived);
        let explanation = explainer().explain(&delivery);
        assert!(explanation.none_fits(), "{explanation}");
        let is_it = |hint: &&Hint| hint.kind() == HintKind::NumbersWrittenAgain;
        explanation.hints().iter().find(is_it).map(Hint::to_string)
    };
    let found = hint(r#"{"id":"evt_1","a":1.5}"#).unwrap();
    says(&found, "zeros at the end of a fraction");
    // Without a number, and with a form that says more.
    assert_eq!(hint(r#"{"id":"evt_1","a":"7"}"#), None);
    assert_eq!(hint(r#"{"id": "evt_1", "a": 1.5}"#), None);
}
