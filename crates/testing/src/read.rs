//! Reads a delivery from text: a raw HTTP request, or lines of headers.
//!
//! ```
//! use hookgate::clock::UnixSeconds;
//! use hookgate_testing::read;
//!
//! let at = UnixSeconds::new(1_763_690_000);
//! let raw = "POST /webhooks HTTP/1.1\r\nX-Service-Timestamp: 1763690000\r\nContent-Length: 2\r\n\r\n{}";
//! let request = read::http(raw, at)?;
//! assert_eq!(request.header("x-service-timestamp").unwrap(), "1763690000");
//! assert_eq!(request.body.as_deref(), Some(b"{}".as_slice()));
//! # Ok::<(), hookgate_testing::read::ReadError>(())
//! ```

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedDelivery;

use ReadErrorKind as Kind;

/// Reads a raw HTTP request, or lines of `Name: value`.
///
/// A request line, the pseudo-headers of HTTP/2, or the `> ` of `curl -v` may stand before the
/// headers. The body follows the empty line. Its length is that of Content-Length where the text is
/// longer. A chunked body is put together from its chunks. Without an empty line there is no body.
/// Lines end with LF or CRLF.
///
/// # Errors
/// `BadHeader` with the line, `NoHeaders`, `BadChunk`.
pub fn http(text: impl AsRef<[u8]>, received_at: UnixSeconds) -> Result<LoggedDelivery, ReadError> {
    let mut rest = text.as_ref();
    let mut head = Head::default();
    let mut body = None;
    for number in 1.. {
        let Some((line, behind)) = first_line(rest) else {
            break;
        };
        rest = behind;
        if line.is_empty() && head.headers.is_empty() {
            continue;
        }
        if line.is_empty() {
            body = Some(behind);
            break;
        }
        head.take(line, number)?;
    }
    if head.headers.is_empty() {
        return Err(ReadError::new(Kind::NoHeaders));
    }
    let body = body.map(|body| head.framed(body)).transpose()?;
    let mut delivery = LoggedDelivery::new(received_at, head.headers, Bytes::new());
    delivery.body = body;
    if let Some(method) = head.method {
        delivery.method = method;
    }
    if let Some(target) = head.target {
        delivery.target = target;
    }
    Ok(delivery)
}

/// Returns the next line without its end, and the text after it. `None` at the end of the text.
fn first_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    if text.is_empty() {
        return None;
    }
    let (line, behind) = match text.iter().position(|byte| *byte == b'\n') {
        Some(end) => (text.get(..end)?, text.get(end + 1..)?),
        None => (text, &text[text.len()..]),
    };
    Some((line.strip_suffix(b"\r").unwrap_or(line), behind))
}

#[derive(Default)]
struct Head {
    method: Option<String>,
    target: Option<String>,
    headers: Vec<(String, Bytes)>,
}

impl Head {
    fn take(&mut self, line: &[u8], number: usize) -> Result<(), ReadError> {
        let line = line.strip_prefix(b"> ").unwrap_or(line);
        // `curl -v` shows an empty line in this form.
        if line == b">" {
            return Ok(());
        }
        if self.headers.is_empty() && self.request_line(line) {
            return Ok(());
        }
        let bad = || ReadError::new(Kind::BadHeader).at_line(number);
        // The first byte may be a colon, as in `:method`.
        let colon = line.iter().skip(1).position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.ok_or_else(bad)? + 1);
        let is_name =
            |byte: &u8| byte.is_ascii_alphanumeric() || b":!#$%&'*+-.^_`|~".contains(byte);
        if !name.iter().all(is_name) {
            return Err(bad());
        }
        let name = String::from_utf8_lossy(name);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        match &*name {
            ":method" => self.method = Some(String::from_utf8_lossy(value).into_owned()),
            ":path" => self.target = Some(String::from_utf8_lossy(value).into_owned()),
            name if name.starts_with(':') => {}
            name => self
                .headers
                .push((name.to_owned(), Bytes::copy_from_slice(value))),
        }
        Ok(())
    }

    /// A line such as `POST /webhooks HTTP/1.1`.
    fn request_line(&mut self, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split(' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        if !version.starts_with("HTTP/") {
            return false;
        }
        self.method = Some(method.to_owned());
        self.target = Some(target.to_owned());
        true
    }

    fn value(&self, name: &str) -> Option<&Bytes> {
        let mut named = self.headers.iter();
        let found = named.find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    fn framed(&self, body: &[u8]) -> Result<Bytes, ReadError> {
        let coding = self.value("transfer-encoding");
        if coding.is_some_and(|coding| coding.to_ascii_lowercase().ends_with(b"chunked")) {
            return unchunked(body);
        }
        let length = self.value("content-length").and_then(|length| {
            let length = std::str::from_utf8(length).ok()?;
            length.parse::<usize>().ok()
        });
        let body = length.and_then(|length| body.get(..length)).unwrap_or(body);
        Ok(Bytes::copy_from_slice(body))
    }
}

fn unchunked(mut rest: &[u8]) -> Result<Bytes, ReadError> {
    let bad = || ReadError::new(Kind::BadChunk);
    let mut body = Vec::with_capacity(rest.len());
    loop {
        let (line, behind) = first_line(rest).ok_or_else(bad)?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
        let size = std::str::from_utf8(size.trim_ascii()).map_err(|_| bad())?;
        let size = usize::from_str_radix(size, 16).map_err(|_| bad())?;
        if size == 0 {
            return Ok(body.into());
        }
        body.extend_from_slice(behind.get(..size).ok_or_else(bad)?);
        let behind = behind.get(size..).unwrap_or_default();
        rest = match first_line(behind) {
            Some((b"", behind)) => behind,
            _ => return Err(bad()),
        };
    }
}

/// The reason why a delivery can't be read from text.
///
/// It repeats no header's value and no byte of a body.
#[derive(Debug, thiserror::Error)]
#[error("{}{kind}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct ReadError {
    kind: ReadErrorKind,
    line: Option<usize>,
}

/// The kinds of errors of reading a delivery from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The text has no header.
    #[error("there is no header in it")]
    NoHeaders,
    /// A line is no `Name: value`.
    #[error("that is not a header: `Name: value` is expected")]
    BadHeader,
    /// The chunks of a body are not in the form of HTTP.
    #[error("the chunks of the body are not written as HTTP writes them")]
    BadChunk,
}

impl ReadError {
    fn new(kind: ReadErrorKind) -> Self {
        Self { kind, line: None }
    }

    fn at_line(mut self, number: usize) -> Self {
        self.line = Some(number);
        self
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> ReadErrorKind {
        self.kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: UnixSeconds = UnixSeconds::new(1_763_690_000);

    fn body(text: &str) -> Option<String> {
        let body = http(text, AT).unwrap().body;
        body.map(|body| String::from_utf8(body.to_vec()).unwrap())
    }

    #[test]
    fn a_request_is_read_as_it_stands() {
        let read = http(
            "PUT /a?b HTTP/1.1\r\nHost: x\r\nX-A:  1 \r\nx-a:2\r\n\r\n{}\r\n",
            AT,
        )
        .unwrap();
        assert_eq!((&*read.method, &*read.target), ("PUT", "/a?b"));
        let values: Vec<_> = read
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        assert_eq!(
            values,
            [("host", b"x".as_slice()), ("x-a", b"1"), ("x-a", b"2")]
        );
        assert_eq!(read.body.as_deref(), Some(b"{}\r\n".as_slice()));
        assert_eq!(read.received_at, AT);
    }

    #[test]
    fn headers_alone_have_no_body() {
        for text in [
            "X-A: 1",
            "\nX-A: 1\n",
            "> POST / HTTP/2\n> X-A: 1\n>\n",
            ":method: POST\n:path: /w\n:scheme: https\nx-a: 1\n",
        ] {
            let read = http(text, AT).unwrap();
            assert_eq!(
                read.headers,
                [("x-a".to_owned(), Bytes::from_static(b"1"))],
                "{text}"
            );
            assert_eq!((read.body, &*read.method), (None, "POST"));
        }
        assert_eq!(http(":path: /w\nx-a: 1", AT).unwrap().target, "/w");
    }

    #[test]
    fn a_body_is_as_long_as_it_says() {
        assert_eq!(body("a: 1\n\n").as_deref(), Some(""));
        assert_eq!(body("content-length: 2\n\n{}\n").as_deref(), Some("{}"));
        assert_eq!(body("Content-Length: 9\n\n{}\n").as_deref(), Some("{}\n"));
        let chunked = "Transfer-Encoding: chunked\r\n\r\n2;x=y\r\n{\n\r\n1\r\n}\r\n0\r\n\r\n";
        assert_eq!(body(chunked).as_deref(), Some("{\n}"));
    }

    #[test]
    fn what_is_not_a_header_is_named_by_its_line() {
        for (text, kind, place) in [
            ("", Kind::NoHeaders, ""),
            ("\n\n{}", Kind::BadHeader, "line 3"),
            ("X-A: 1\nnonsense\n", Kind::BadHeader, "line 2"),
            ("X A: 1\n", Kind::BadHeader, "line 1"),
            ("POST / HTTP/1.1\n", Kind::NoHeaders, ""),
            ("Transfer-Encoding: chunked\n\nzz\n", Kind::BadChunk, ""),
            ("Transfer-Encoding: chunked\n\n5\nab\n", Kind::BadChunk, ""),
        ] {
            let error = http(text, AT).unwrap_err();
            assert_eq!(error.kind(), kind, "{text:?}");
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }
}
