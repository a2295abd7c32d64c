//! The trace of a request, from its header `traceparent`.

/// The header's name.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A value of that header, in the least memory: each delivery keeps it. Only [`Traceparent::parse`] makes one.
#[derive(Clone)]
pub(super) struct Traceparent(Box<[u8; 55]>);

impl Traceparent {
    /// Returns the value if it is well-formed.
    pub(super) fn parse(value: &[u8]) -> Option<Self> {
        let value = traceparent(value)?.as_bytes().try_into().ok()?;
        Some(Self(Box::new(value)))
    }

    pub(super) fn as_str(&self) -> &str {
        // The bytes are always ASCII, so the fallback is never used.
        std::str::from_utf8(&*self.0).unwrap_or_default()
    }
}

/// Returns the value if it has the form of W3C Trace Context, version 00: 55 bytes, with a version, a trace id, the id of the
/// parent span, and flags. Neither id is all zeros, and version ff is invalid. A later version with the same length is read as
/// version 00.
fn traceparent(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let mut parts = text.split('-');
    let part = |part: Option<&str>, digits| {
        let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        part.is_some_and(|part| part.len() == digits && part.bytes().all(is_hex))
    };
    let is_id = |id: Option<&str>, digits| {
        part(id, digits) && id.is_some_and(|id| id.bytes().any(|byte| byte != b'0'))
    };
    let version = parts.next();
    let is_well_formed = part(version, 2)
        && version != Some("ff")
        && is_id(parts.next(), 32)
        && is_id(parts.next(), 16)
        && part(parts.next(), 2)
        && parts.next().is_none();
    is_well_formed.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn only_the_form_of_the_standard_is_kept() {
        for good in [
            GOOD.to_owned(),
            GOOD.replace("-01", "-00"),
            GOOD.replace("00-", "cc-"),
        ] {
            assert_eq!(traceparent(good.as_bytes()), Some(&*good));
            assert_eq!(good.len(), 55);
        }
        for bad in [
            String::new(),
            GOOD.to_uppercase(),
            GOOD.replace("00-", "ff-"),
            GOOD.replace("00-", "0g-"),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace("b7ad", "b7 d"),
            GOOD.replace('-', "_"),
            format!("{GOOD}-"),
            format!("{GOOD}-what-the-future-will-be-like"),
            format!(" {GOOD}"),
            format!("{GOOD}\n"),
            GOOD[..54].to_owned(),
            GOOD.replace("-01", "-é"),
            "-".repeat(55),
        ] {
            assert_eq!(traceparent(bad.as_bytes()), None, "{bad:?}");
        }
        assert_eq!(traceparent(&[0xff; 55]), None);
    }
}
