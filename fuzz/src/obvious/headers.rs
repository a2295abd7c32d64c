//! Headers, as listed in the service's specification and as read by the design.

pub type Pairs = [(Vec<u8>, Vec<u8>)];

/// `[1-9][0-9]{0,15}`.
pub fn is_timestamp(text: &[u8]) -> bool {
    (1..=16).contains(&text.len())
        && text.iter().all(|byte| b"0123456789".contains(byte))
        && text[0] != b'0'
}

/// `sha256=[0-9a-f]{64}`.
pub fn is_signature(text: &[u8]) -> bool {
    text.len() == 71
        && &text[..7] == b"sha256="
        && text[7..]
            .iter()
            .all(|byte| b"0123456789abcdef".contains(byte))
}

/// All values of a header, in order.
pub fn values<'p>(pairs: &'p Pairs, name: &str) -> Vec<&'p [u8]> {
    let named = pairs
        .iter()
        .filter(|(other, _)| other.to_ascii_lowercase() == name.as_bytes());
    named.map(|(_, value)| value.as_slice()).collect()
}

/// Returns all faults of the delivery's headers: a header and `missing`, `doubled` or `malformed`.
pub fn faults(pairs: &Pairs) -> Vec<(&'static str, &'static str)> {
    let mut faults = Vec::new();
    let mut require = |name, is_good: fn(&[u8]) -> bool| match values(pairs, name)[..] {
        [] => faults.push((name, "missing")),
        [only] if is_good(only) => {}
        [_] => faults.push((name, "malformed")),
        _ => faults.push((name, "duplicate")),
    };
    require("x-service-signature", is_signature);
    require("x-service-timestamp", is_timestamp);
    for name in [
        "x-service-webhook-id",
        "x-service-event-id",
        "x-service-event-type",
    ] {
        if values(pairs, name).len() > 1 {
            faults.push((name, "duplicate"));
        }
    }
    faults
}

/// Returns the value of a header that appears exactly once.
pub fn only<'p>(pairs: &'p Pairs, name: &str) -> Option<&'p [u8]> {
    match values(pairs, name)[..] {
        [only] => Some(only),
        _ => None,
    }
}
