//! The head of a request, read in one pass before a byte of the body.

use super::traceparent::{TRACEPARENT, Traceparent};
use crate::event::EventHead;
use crate::outcome::{Refusal, RefusalKind};
use crate::verify::{DeliveryHeaders, HeaderSlots};

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
    /// Takes **all** headers unchanged, repeated ones too, in any order and case.
    pub fn new<N, V>(method: &'h str, headers: impl IntoIterator<Item = (N, &'h V)>) -> Self
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]> + ?Sized + 'h,
    {
        let mut head = Self {
            method,
            found: HeaderSlots::default(),
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
                // The server refuses a length that is not a number; the real size is limited anyway.
                self.announced_bytes = self.announced_bytes.max(number(value).unwrap_or(0));
            }
            16 if is(name, "content-encoding") => {
                // Bodies are never decompressed: the signature covers the bytes as sent, and a small compressed body can become
                // very large.
                self.foreign_encoding |= !value.trim_ascii().eq_ignore_ascii_case(b"identity");
            }
            _ => self.found.take(name, value),
        }
    }

    /// Sets the least number of bytes of the body, if the server knows it from another source than `Content-Length`.
    #[must_use]
    pub fn announcing(mut self, bytes: u64) -> Self {
        self.announced_bytes = self.announced_bytes.max(bytes);
        self
    }

    /// Makes the checks that come before all authentication, in the order of the outcomes table, and reads the headers of the delivery.
    pub(crate) fn read(&self, max_body: usize) -> Result<DeliveryHeaders<'h>, Refusal> {
        let kind = if self.method != "POST" {
            RefusalKind::MethodNotAllowed
        } else if self.foreign_encoding {
            RefusalKind::EncodingNotSupported
        } else if self.foreign_type {
            RefusalKind::TypeNotSupported
        } else if self.announced_bytes > max_body as u64 {
            RefusalKind::BodyTooLarge
        } else {
            return Ok(self.found.headers()?);
        };
        Err(Refusal::new(kind))
    }

    /// Returns the refusal if the unsigned headers name another event than the signed body.
    pub(super) fn differs_from(&self, event: &EventHead) -> Option<RefusalKind> {
        let (id, event_type) = self.found.event_hints();
        let differs = |hint: Option<&[u8]>, signed: &[u8]| hint.is_some_and(|hint| hint != signed);
        if differs(id, event.id.as_bytes()) {
            Some(RefusalKind::EventIdDiffers)
        } else if differs(event_type, event.event_type.as_str().as_bytes()) {
            Some(RefusalKind::EventTypeDiffers)
        } else {
            None
        }
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

/// Compares names without regard to case. Most are in lower case, as HTTP/2 and the http crate write them.
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

/// Returns whether the type is `application/json` or has the suffix `+json` (RFC 6838 §4.2.8), in any case, with any
/// parameters.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &str, headers: &[(&str, &str)]) -> Option<RefusalKind> {
        let head = RequestHead::new(method, headers.iter().copied());
        let refusal = head.read(100).err();
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
            Some(EncodingNotSupported)
        );
        assert_eq!(refused("POST", &[large, typed]), Some(TypeNotSupported));
        assert_eq!(refused("POST", &[large]), Some(BodyTooLarge));
        assert_eq!(refused("POST", &[("content-length", "100")]), None);
        assert_eq!(refused("post", &[]), Some(MethodNotAllowed));
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
            assert_eq!(kind, Some(RefusalKind::TypeNotSupported), "{bad}");
        }
        let repeated = [
            ("content-type", "application/json"),
            ("content-type", "text/plain"),
        ];
        assert_eq!(
            refused("POST", &repeated),
            Some(RefusalKind::TypeNotSupported)
        );
    }
}
