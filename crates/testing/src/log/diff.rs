//! The differences between two deliveries.

use std::collections::BTreeMap;

use hookgate_record::LoggedDelivery;

use super::value::Json;

/// The limit of the total length of all paths: the body's length times this, plus a few bytes. Below it, bodies are compared
/// path by path.
const LONGER: usize = 64;
const FEW_BYTES: usize = 1 << 20;

/// One difference between two deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The path of the value: `method`, `headers.x-service-timestamp`, `body.data.properties.Total`, `answer.status`.
    pub path: String,
    /// The value in the first delivery; `None` where it has none.
    pub before: Option<String>,
    /// The value in the other delivery; `None` where it has none.
    pub after: Option<String>,
    /// Whether both are one number, written differently: 12.50 and 12.5. A signature covers the digits.
    pub same_number: bool,
}

/// See [`LoggedDeliveryExt::differences`](super::LoggedDeliveryExt::differences).
pub(super) fn differences(one: &LoggedDelivery, other: &LoggedDelivery) -> Vec<Difference> {
    let [mut before, mut after] = [one, other].map(parts);
    let bodies = (&one.body, &other.body);
    if let (Some(body), Some(another)) = bodies
        && body != another
        && before == after
    {
        for (parts, body) in [(&mut before, body), (&mut after, another)] {
            parts.insert("body (bytes)".into(), shown_bytes(body).into());
        }
    }
    let mut paths: Vec<_> = before.keys().chain(after.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    let differences = paths.into_iter().filter_map(|path| {
        let (before, after) = (before.remove(&path), after.remove(&path));
        (before != after).then(|| Difference {
            path,
            same_number: number(&before).is_some_and(|one| number(&after) == Some(one)),
            before: before.map(|part| part.text),
            after: after.map(|part| part.text),
        })
    });
    differences.collect()
}

/// A part of a delivery.
#[derive(PartialEq)]
struct Part {
    text: String,
    /// A form that is the same for all equal numbers, where it is a number.
    number: Option<String>,
}

fn number(part: &Option<Part>) -> Option<&str> {
    part.as_ref()?.number.as_deref()
}

impl From<String> for Part {
    fn from(text: String) -> Self {
        Self { text, number: None }
    }
}

fn parts(delivery: &LoggedDelivery) -> BTreeMap<String, Part> {
    let mut parts = BTreeMap::new();
    let mut put = |path: String, value: String| {
        // The values of a repeated header are joined, in their order.
        parts
            .entry(path)
            .and_modify(|all: &mut Part| *all = format!("{}, {value}", all.text).into())
            .or_insert_with(|| value.into());
    };
    put("method".into(), delivery.method.clone());
    put("target".into(), delivery.target.clone());
    for (name, value) in &delivery.headers {
        put(format!("headers.{name}"), shown_bytes(value));
    }
    if let Some(answer) = &delivery.answer {
        put("answer.status".into(), answer.status.to_string());
        put("answer.outcome".into(), answer.outcome.clone());
        let texts = [
            ("reason", answer.reason.clone()),
            ("key", answer.key.clone()),
            ("scope", answer.scope.clone()),
            ("attempt", answer.attempt.map(|attempt| attempt.to_string())),
            ("claimed_subscription", answer.claimed_subscription.clone()),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                put(format!("answer.{name}"), text);
            }
        }
    }
    if delivery.hung_up_after.is_some() {
        put("answer".into(), "none: the sender hung up".into());
    }
    let Some(body) = delivery.body.as_deref() else {
        return parts;
    };
    let json = Json::read(body).filter(|json| {
        let most = body.len().saturating_mul(LONGER) + FEW_BYTES;
        fits(json, "body".len(), &mut { most })
    });
    match json {
        Some(json) => walk("body".into(), &json, &mut |path, part| {
            drop(parts.insert(path, part))
        }),
        None => drop(parts.insert("body".into(), shown_bytes(body).into())),
    }
    parts
}

/// Returns whether all paths together fit into the bytes left. Each leaf has its own path, so long names above many leaves
/// would take all memory.
fn fits(value: &Json, path: usize, left: &mut usize) -> bool {
    match value {
        Json::Object(fields) if !fields.is_empty() => fields
            .iter()
            .all(|(name, value)| fits(value, path + 1 + name.len(), left)),
        Json::Array(items) if !items.is_empty() => items.iter().enumerate().all(|(at, item)| {
            let digits = at.checked_ilog10().map_or(1, |log| log as usize + 1);
            fits(item, path + 2 + digits, left)
        }),
        _ => match left.checked_sub(path) {
            Some(rest) => {
                *left = rest;
                true
            }
            None => false,
        },
    }
}

/// Puts each leaf with its path. The depth is limited where the JSON is read.
fn walk(path: String, value: &Json, put: &mut impl FnMut(String, Part)) {
    match value {
        Json::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                walk(format!("{path}.{name}"), value, put);
            }
        }
        Json::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                walk(format!("{path}[{at}]"), item, put);
            }
        }
        Json::Object(_) => put(path, String::from("{}").into()),
        Json::Array(_) => put(path, String::from("[]").into()),
        Json::Leaf(leaf) => {
            let (text, number) = (leaf.clone(), normal(leaf));
            put(path, Part { text, number });
        }
    }
}

/// Returns a number's text in a form that is the same for all equal numbers. `None` if the text is not a number, or its exponent
/// needs more than 64 bits.
fn normal(text: &str) -> Option<String> {
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    if !magnitude.starts_with(|char: char| char.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let digits = all.trim_end_matches('0');
    let zeros = i64::try_from(all.len() - digits.len()).ok()?;
    let exponent: i64 = exponent.parse().ok()?;
    let exponent = exponent
        .checked_add(zeros)?
        .checked_sub(i64::try_from(fraction.len()).ok()?)?;
    Some(match digits.trim_start_matches('0') {
        "" => "0".to_owned(),
        digits if text.starts_with('-') => format!("-{digits}e{exponent}"),
        digits => format!("{digits}e{exponent}"),
    })
}

/// Returns the bytes as text. Bytes that are no UTF-8 are shown with replacement characters, and with their length.
fn shown_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => format!(
            "{} ({} bytes, not UTF-8)",
            String::from_utf8_lossy(bytes),
            bytes.len()
        ),
    }
}
