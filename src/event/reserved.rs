//! Keys that serde_json reserves for itself.
//!
//! serde_json passes a raw value or a number between its own types as an object with one key. `serde_json::Value` treats the
//! same key in a text as such an object: it reads the string under `$serde_json::private::RawValue` as JSON, with a new depth
//! limit. Texts nested in this way overflow the stack, which aborts the process. A property with that name also replaces the
//! object that it is in. The service has no reason to send such a key, so a body with one is refused.

/// The beginning of these keys. Any of its characters may be escaped as `\uXXXX`; JSON has no other escape for them.
const PREFIX: &[u8] = b"$serde_json::private::";

/// Returns the position of the first such key, at its opening quote.
pub(super) fn find(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(distance) = text.get(at..)?.iter().position(|&byte| byte == b'"') {
        let start = at + distance;
        let end = end_of_string(text, start + 1);
        if begins_reserved(&text[start + 1..end]) && is_colon_next(&text[end..]) {
            return Some(start);
        }
        at = end;
    }
    None
}

/// Returns the offset after the closing quote.
fn end_of_string(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            None => return text.len(),
            Some(b'"') => return at + 1,
            Some(b'\\') => at += 2,
            Some(_) => at += 1,
        }
    }
}

/// Only a key is followed by a colon.
fn is_colon_next(rest: &[u8]) -> bool {
    let mut rest = rest.iter().skip_while(|byte| b" \t\n\r".contains(byte));
    rest.next() == Some(&b':')
}

fn begins_reserved(mut key: &[u8]) -> bool {
    PREFIX.iter().all(|&expected| {
        let (unit, length) = match key {
            [b'\\', ..] => (hex_escape(key, 0), 6),
            [byte, ..] => (Some(u32::from(*byte)), 1),
            [] => (None, 0),
        };
        key = key.get(length..).unwrap_or_default();
        unit == Some(u32::from(expected))
    })
}

/// Returns the code unit of the `\uXXXX` at this offset.
pub(super) fn hex_escape(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, &digit| {
        Some(unit << 4 | char::from(digit).to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_key_is_found_in_every_spelling() {
        let escaped: String = PREFIX.iter().map(|byte| format!("\\u{byte:04x}")).collect();
        let upper = escaped.to_uppercase().replace("\\U", "\\u");
        let spellings = [
            "$serde_json::private::RawValue".into(),
            "$serde_json::private::Number".into(),
            "$serde_json::private::".into(),
            r"\u0024serde_json::private::RawValue".into(),
            r"$\u0073erde_json::private::RawValue".into(),
            r"$serde_json::private\u003A:RawValue".into(),
            r"$serde_json::private::\u0052awValue".into(),
            format!("{escaped}RawValue"),
            upper,
        ];
        for key in spellings {
            for behind in ["", " ", "\t\r\n "] {
                let text = format!("[{{\"a\":\"\\\"\",\"{key}\"{behind}:1}}]");
                assert_eq!(find(text.as_bytes()), Some(11), "{text}");
            }
        }
    }

    #[test]
    fn every_other_text_is_left_alone() {
        for text in [
            r#"{"$serde_json::private:":1}"#,
            r#"{"$serde_json":1,"private::RawValue":2}"#,
            r#"{" $serde_json::private::RawValue":1}"#,
            r#"{"\\u0024serde_json::private::RawValue":1}"#,
            r#"{"\"$serde_json::private::RawValue":1}"#,
            r#"{"$Serde_json::private::RawValue":1}"#,
            r#"{"$\serde_json::private::RawValue":1}"#,
            r#"{"a":"$serde_json::private::RawValue"}"#,
            r#"["$serde_json::private::RawValue",":"]"#,
            r#"{"a":"\"$serde_json::private::RawValue\":1"}"#,
            r#"{"$serde_json::private::RawValue"#,
            r#"{"$serde_json::private::RawValue\"#,
            r#""\"#,
            "\"",
            "",
        ] {
            assert_eq!(find(text.as_bytes()), None, "{text}");
        }
    }
}
