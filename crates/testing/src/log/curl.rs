//! A curl command that sends a logged delivery.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hookgate_record::{LoggedDelivery, REDACTED};

use crate::transport::is_of_the_connection;

/// Headers that curl sends unless an option removes them.
const OF_CURL: [&str; 4] = ["accept", "content-type", "expect", "user-agent"];
/// A longer body goes through a pipe: the longest argument that Linux takes is 128 KiB.
const LONGEST_ARGUMENT: usize = 64 << 10;

/// See [`LoggedDeliveryExt::to_curl`](super::LoggedDeliveryExt::to_curl).
pub(super) fn to_curl(delivery: &LoggedDelivery, url: &str) -> Option<String> {
    let body = delivery.body.as_deref()?;
    let pasted = std::str::from_utf8(body).ok().filter(|text| {
        text.len() <= LONGEST_ARGUMENT && !text.chars().any(|char| char != '\n' && is_hidden(char))
    });
    let mut command = String::new();
    if pasted.is_none() {
        let _ = write!(
            command,
            "printf %s '{}' | base64 -d | \\\n  ",
            STANDARD.encode(body)
        );
    }
    let _ = write!(command, "curl -i --url {}", quoted(url.as_bytes()));
    if url.contains(['[', ']', '{', '}']) {
        command.push_str(" --globoff");
    }
    if delivery.method != "POST" {
        let _ = write!(command, " -X {}", quoted(delivery.method.as_bytes()));
    }
    for (name, value) in &delivery.headers {
        if is_of_the_connection(name) || **value == *REDACTED.as_bytes() {
            continue;
        }
        // curl removes a header without a value, unless the header ends in a semicolon.
        let header = match value.is_empty() {
            true => format!("{name};").into_bytes(),
            false => [format!("{name}: ").as_bytes(), value].concat(),
        };
        let _ = write!(command, " \\\n  -H {}", quoted(&header));
    }
    for name in OF_CURL {
        if name == "expect" || delivery.header(name).is_none() {
            let _ = write!(command, " \\\n  -H '{name}:'");
        }
    }
    match pasted {
        Some(text) => {
            let _ = write!(command, " \\\n  --data-raw {}", quoted(text.as_bytes()));
        }
        None => command.push_str(" \\\n  --data-binary @-"),
    }
    Some(command)
}

/// One argument for a shell. Bytes that are not text, or can't be seen, are written in a form that bash and zsh know.
fn quoted(bytes: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.chars().any(|char| char != '\n' && is_hidden(char))
    {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let mut word = String::from("$'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                word.push('\\');
                word.push(char::from(*byte));
            }
            b' '..=b'~' => word.push(char::from(*byte)),
            _ => {
                let _ = write!(word, "\\x{byte:02x}");
            }
        }
    }
    word.push('\'');
    word
}

/// Control characters, and invisible characters that change how a text looks: a terminal or an editor may change them.
fn is_hidden(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
