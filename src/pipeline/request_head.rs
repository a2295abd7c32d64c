//! The head of a request, read in one pass before a byte of the body.

use crate::event::{EventHead, EventType};
use crate::outcome::{Refusal, RefusalDetail, RefusalKind};
use crate::scheme::{DeliveryHeaders, HeaderSlots, Scheme, UNTYPED};
use crate::verify::{VerifyError, VerifyErrorKind};

/// Method and headers of a request, borrowed from the server.
///
/// ```
/// use hookgate::receiver::RequestHead;
///
/// let headers = [("Content-Type", "application/json"), ("Content-Length", "2")];
/// let head = RequestHead::new("POST", headers);
/// # let _ = head;
/// ```
#[derive(Clone, Debug)]
pub struct RequestHead<'h> {
    method: &'h str,
    found: HeaderSlots<'h>,
    foreign_encoding: bool,
    foreign_type: bool,
    announced_bytes: u64,
    /// The header `traceparent`. Empty if it appears more than once.
    traceparent: Option<&'h [u8]>,
}

impl<'h> RequestHead<'h> {
    /// Takes **all** headers unchanged, repeated ones too, in any order and case, for a receiver of
    /// the default scheme; [`Receiver::request_head`](crate::Receiver::request_head) does so for
    /// any.
    pub fn new<N, V>(method: &'h str, headers: impl IntoIterator<Item = (N, &'h V)>) -> Self
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'h,
    {
        Self::with_scheme(Scheme::workspace(), method, headers)
    }

    pub(crate) fn with_scheme<'v: 'h, N, V>(
        scheme: &'h Scheme,
        method: &'h str,
        headers: impl IntoIterator<Item = (N, &'v V)>,
    ) -> Self
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'v,
    {
        let mut head = Self {
            method,
            found: HeaderSlots::new(scheme),
            foreign_encoding: false,
            foreign_type: false,
            announced_bytes: 0,
            traceparent: None,
        };
        for (name, value) in headers {
            head.take(name.as_ref(), value.as_ref());
        }
        head
    }

    /// Takes a header. Its length decides with which names it is compared.
    #[inline]
    fn take(&mut self, name: &[u8], value: &'h [u8]) {
        match name.len() {
            11 if is(name, TRACEPARENT) => {
                self.traceparent = Some(self.traceparent.map_or(value, |_| b""));
            }
            12 if is(name, "content-type") => {
                self.foreign_type |= value != b"application/json" && !is_json(value);
            }
            14 if is(name, "content-length") => {
                // The server refuses a length that is not a number; the real size is limited
                // anyway.
                self.announced_bytes = self.announced_bytes.max(number(value).unwrap_or(0));
            }
            16 if is(name, "content-encoding") => {
                // Bodies are never decompressed: the signature covers the bytes as sent, and a
                // small compressed body can become very large.
                self.foreign_encoding |= !is_identity(value);
            }
            _ => self.found.take(name, value),
        }
    }

    /// Sets the least number of bytes of the body, if the server knows it from another source than
    /// `Content-Length`.
    #[must_use]
    pub fn announcing(mut self, bytes: u64) -> Self {
        self.announced_bytes = self.announced_bytes.max(bytes);
        self
    }

    /// Makes the checks that come before all authentication, in the order of the outcomes table,
    /// and reads the headers of the delivery.
    pub(crate) fn read(
        &self,
        max_body: usize,
        scheme: &Scheme,
    ) -> Result<DeliveryHeaders<'h>, Refusal> {
        let media = |detail| Refusal::new(RefusalKind::MediaNotSupported).caused_by(detail);
        if self.method != "POST" {
            Err(Refusal::new(RefusalKind::MethodNotAllowed))
        } else if self.foreign_encoding {
            Err(media(RefusalDetail::ContentEncoding))
        } else if self.foreign_type {
            Err(media(RefusalDetail::ContentType))
        } else if self.announced_bytes > max_body as u64 {
            Err(Refusal::new(RefusalKind::BodyTooLarge))
        } else if !self.found.scheme().is_same(scheme) {
            Err(VerifyError::new(VerifyErrorKind::SchemeMismatch).into())
        } else {
            Ok(self.found.headers()?)
        }
    }

    /// Returns the refusal if the unsigned headers name another event than the signed body.
    pub(super) fn differs_from(&self, event: &EventHead) -> Option<Refusal> {
        let scheme = self.found.scheme();
        let id = scheme.id_field().map(|_| event.id.as_bytes());
        // A body may have no type where the scheme does not ask for one.
        let has_type = |required| required || event.event_type.as_str() != UNTYPED;
        let kind = scheme
            .kind_field()
            .filter(|(_, required)| has_type(*required));
        let kind = kind.map(|_| event.event_type.as_str());
        let signed = [id, kind.map(str::as_bytes)];
        let mut hints = self.found.event_hints().into_iter().zip(signed);
        let differs = |((_, hint), signed): &((_, Option<&[u8]>), Option<&[u8]>)| {
            signed.is_some_and(|signed| hint.is_some_and(|hint| hint != signed))
        };
        let ((name, _), _) = hints.find(differs)?;
        let detail = RefusalDetail::Differs(name);
        Some(Refusal::new(RefusalKind::HeaderDiffers).caused_by(detail))
    }

    /// Returns the type that an unsigned header names, for a scheme that signs none.
    pub(super) fn unsigned_type(&self) -> Option<EventType> {
        if self.found.scheme().signs_type() {
            return None;
        }
        let [_, (_, kind)] = self.found.event_hints();
        EventType::parse(std::str::from_utf8(kind?).ok()?).ok()
    }

    /// Names the claimed subscription in a refusal of this request.
    pub(crate) fn named_in(&self, refusal: Refusal) -> Refusal {
        refusal.claiming(self.webhook_hint())
    }

    /// Returns the subscription that the request names, which is not signed.
    pub(super) fn webhook_hint(&self) -> Option<&'h [u8]> {
        self.found.webhook_hint()
    }

    /// Returns the trace that the request belongs to, if its header is well-formed.
    pub(super) fn traceparent(&self) -> Option<Traceparent> {
        self.traceparent.and_then(Traceparent::parse)
    }
}

/// Compares names without regard to case. Most are in lower case, as HTTP/2 and the http crate
/// write them.
#[inline]
fn is(name: &[u8], lower: &str) -> bool {
    name == lower.as_bytes() || name.eq_ignore_ascii_case(lower.as_bytes())
}

/// Returns the number that these digits write.
fn number(digits: &[u8]) -> Option<u64> {
    digits.trim_ascii().iter().try_fold(0_u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        let number = number.checked_mul(10)?.checked_add(u64::from(digit));
        number.filter(|_| digit < 10)
    })
}

/// Returns whether a list of content codings (RFC 9110 §5.6.1) has no other member than `identity`.
/// An empty list names no coding.
fn is_identity(codings: &[u8]) -> bool {
    let mut codings = codings.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    codings.all(|coding| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns whether the type is `application/json` or has the suffix `+json` (RFC 6838 §4.2.8), in
/// any case, with any parameters.
fn is_json(content_type: &[u8]) -> bool {
    let essence = content_type
        .split(|&byte| byte == b';')
        .next()
        .unwrap_or_default()
        .trim_ascii();
    let suffixed = essence.len() > 5
        && essence[essence.len() - 5..].eq_ignore_ascii_case(b"+json")
        && essence.iter().filter(|&&byte| byte == b'/').count() == 1
        && !essence.iter().any(u8::is_ascii_whitespace);
    essence.eq_ignore_ascii_case(b"application/json") || suffixed
}

/// The header's name.
pub(crate) const TRACEPARENT: &str = "traceparent";

/// A value of that header, in the least memory: each delivery keeps it. Only [`Traceparent::parse`]
/// makes one.
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

/// Returns the value if it has the form of W3C Trace Context, version 00: 55 bytes, with a version,
/// a trace id, the id of the parent span, and flags. Neither id is all zeros, and version ff is
/// invalid. A later version with the same length is read as version 00.
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

    fn refused(method: &str, headers: &[(&str, &str)]) -> Option<RefusalKind> {
        let head = RequestHead::new(method, headers.iter().copied());
        let refusal = head.read(100, Scheme::workspace()).err();
        refusal
            .map(|refusal| refusal.kind())
            .filter(|kind| *kind != RefusalKind::NotAuthentic)
    }

    #[test]
    fn the_first_row_that_applies_refuses() {
        use RefusalKind::*;
        let [encoded, typed, large] = [
            ("Content-Encoding", "gzip"),
            ("Content-Type", "text/plain"),
            ("Content-Length", "101"),
        ];
        assert_eq!(
            refused("GET", &[encoded, typed, large]),
            Some(MethodNotAllowed)
        );
        assert_eq!(
            refused("POST", &[large, typed, encoded]),
            Some(MediaNotSupported)
        );
        assert_eq!(refused("POST", &[large, typed]), Some(MediaNotSupported));
        assert_eq!(refused("POST", &[large]), Some(BodyTooLarge));
        assert_eq!(refused("POST", &[("content-length", "100")]), None);
        assert_eq!(refused("post", &[]), Some(MethodNotAllowed));
    }

    #[test]
    fn only_a_content_coding_other_than_identity_is_refused() {
        for good in [
            "",
            " ",
            "\t",
            ",",
            " , ,",
            "identity",
            " Identity ",
            "identity,",
        ] {
            let kind = refused("POST", &[("content-encoding", good)]);
            assert_eq!(kind, None, "{good:?}");
        }
        for bad in ["gzip", ",gzip", "identity, br", "gzip,identity", "x", ";"] {
            let kind = refused("POST", &[("content-encoding", bad)]);
            assert_eq!(kind, Some(RefusalKind::MediaNotSupported), "{bad:?}");
        }
        let repeated = [("content-encoding", ""), ("content-encoding", "gzip")];
        let kind = refused("POST", &repeated);
        assert_eq!(kind, Some(RefusalKind::MediaNotSupported));
    }

    #[test]
    fn json_is_recognised_by_its_content_type_alone() {
        for good in [
            "application/json",
            "Application/JSON; charset=utf-8",
            "application/vnd.service+json",
            "APPLICATION/CLOUDEVENTS+JSON;v=1",
        ] {
            assert_eq!(refused("POST", &[("content-type", good)]), None, "{good}");
        }
        for bad in [
            "",
            "text/json",
            "application/jsonp",
            "+json",
            "json",
            "text/html;application/json",
            "application/x www+json",
        ] {
            let kind = refused("POST", &[("content-type", bad)]);
            assert_eq!(kind, Some(RefusalKind::MediaNotSupported), "{bad}");
        }
        let repeated = [
            ("content-type", "application/json"),
            ("content-type", "text/plain"),
        ];
        assert_eq!(
            refused("POST", &repeated),
            Some(RefusalKind::MediaNotSupported)
        );
    }

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
