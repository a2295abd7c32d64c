//! Reads the delivery that a curl command would send.

use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedDelivery;

use super::http::http;
use super::shell::{piped, words};
use super::{ReadError, ReadErrorKind as Kind};

/// Short options with a value, besides those that this reader interprets.
const SHORT: &str = "bcCDeEhKmoPQrtuUwxyYz";
/// Long options with a value. An option that is in no list is treated as one without a value.
const LONG: [&str; 34] = [
    "cacert",
    "capath",
    "cert",
    "cert-type",
    "ciphers",
    "config",
    "connect-timeout",
    "connect-to",
    "cookie",
    "cookie-jar",
    "dump-header",
    "interface",
    "keepalive-time",
    "key",
    "key-type",
    "limit-rate",
    "max-redirs",
    "max-time",
    "netrc-file",
    "noproxy",
    "oauth2-bearer",
    "output",
    "pass",
    "proxy",
    "proxy-user",
    "range",
    "referer",
    "resolve",
    "retry",
    "retry-delay",
    "retry-max-time",
    "unix-socket",
    "user",
    "write-out",
];

/// Reads a curl command, as a browser copies it or a document shows it, and returns the delivery that it would send.
///
/// It understands bash's quoting, `$'…'` and continued lines, and the options `-H`, `-X`, `-A`, `-d` with all its variants,
/// `--json`, `-T`. It ignores other options. As in curl, `-d @file` leaves out line breaks, and several `-d` are joined by `&`.
///
/// `file` gets the names of files that stand after `@` and returns their bytes: return an error where no file may be read. `-`
/// means standard input.
///
/// # Errors
/// `NotCurl`, `BadQuoting`, `Variable`, `MissingValue`, `Unreadable`, `Multipart`, `BadHeader`.
pub fn curl(
    command: &str,
    received_at: UnixSeconds,
    mut file: impl FnMut(&str) -> io::Result<Vec<u8>>,
) -> Result<LoggedDelivery, ReadError> {
    let command = command.trim_start_matches(['$', '#', ' ', '\t', '\n', '\r', '\u{feff}']);
    let (command, printed) = behind_printf(command)?;
    let mut file = |name: &str| match (name, &printed) {
        ("-", Some(printed)) => Ok(printed.clone()),
        _ => file(name),
    };
    let mut words = words(command)?.into_iter();
    let name = words.next().unwrap_or_default();
    let program = name
        .rsplit(|byte| b"/\\".contains(byte))
        .next()
        .unwrap_or_default();
    if program != b"curl" && program != b"curl.exe" {
        return Err(ReadError::new(Kind::NotCurl));
    }
    let mut request = Request::default();
    let mut only_operands = false;
    while let Some(word) = words.next() {
        let text = String::from_utf8_lossy(&word).into_owned();
        if only_operands || text == "-" || !text.starts_with('-') {
            request.url.get_or_insert(text);
        } else if text == "--" {
            only_operands = true;
        } else if let Some(name) = text.strip_prefix("--") {
            if Request::takes_value(name) {
                let value = words.next().ok_or_else(|| missing(&text))?;
                request.option(name, value, &mut file)?;
            } else {
                request.flag(name);
            }
        } else {
            request.cluster(&word, &mut words, &mut file)?;
        }
    }
    request.into_delivery(received_at)
}

/// Returns the body that `printf %s … | base64 -d |` gives to curl, and the command after it. [`LoggedDelivery::to_curl`] writes
/// a body that is not text in this form.
fn behind_printf(command: &str) -> Result<(&str, Option<Vec<u8>>), ReadError> {
    let (words, decoder) = piped(command)?;
    let [printf, form, encoded] = &words[..] else {
        return Ok((command, None));
    };
    let Some(decoder) = decoder.filter(|_| printf == b"printf" && form == b"%s") else {
        return Ok((command, None));
    };
    let (words, curl) = piped(decoder)?;
    match (&words[..], curl, STANDARD.decode(encoded)) {
        ([base64, decode], Some(curl), Ok(body)) if base64 == b"base64" && decode == b"-d" => {
            Ok((curl, Some(body)))
        }
        _ => Ok((command, None)),
    }
}

fn missing(option: &str) -> ReadError {
    ReadError::new(Kind::MissingValue).at(option)
}

#[derive(Default)]
struct Request {
    method: Option<String>,
    url: Option<String>,
    headers: Vec<(String, Bytes)>,
    /// Names that are given without a value: curl then does not send its own header of that name.
    unset: Vec<String>,
    body: Option<Vec<u8>>,
    in_query: bool,
    json: bool,
    upload: bool,
}

impl Request {
    fn takes_value(name: &str) -> bool {
        let said = [
            "header",
            "request",
            "user-agent",
            "url",
            "data",
            "data-ascii",
            "data-raw",
            "data-binary",
            "data-urlencode",
            "json",
            "upload-file",
            "form",
            "form-string",
            "url-query",
        ];
        said.contains(&name) || LONG.contains(&name)
    }

    fn flag(&mut self, name: &str) {
        if name == "get" {
            self.in_query = true;
        }
    }

    /// `-sSd body`: flags, up to the option that takes the rest or the next word as its value.
    fn cluster(
        &mut self,
        word: &[u8],
        words: &mut impl Iterator<Item = Vec<u8>>,
        file: &mut impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<(), ReadError> {
        for (at, &letter) in word.iter().enumerate().skip(1) {
            let name = match letter {
                b'H' => "header",
                b'X' => "request",
                b'A' => "user-agent",
                b'd' => "data",
                b'T' => "upload-file",
                b'F' => "form",
                b'G' => {
                    self.in_query = true;
                    continue;
                }
                letter if SHORT.contains(char::from(letter)) => "other",
                _ => continue,
            };
            let rest = word.get(at + 1..).filter(|rest| !rest.is_empty());
            let value = rest.map(<[u8]>::to_vec).or_else(|| words.next());
            let value = value.ok_or_else(|| missing(&format!("-{}", char::from(letter))))?;
            return self.option(name, value, file);
        }
        Ok(())
    }

    fn option(
        &mut self,
        name: &str,
        value: Vec<u8>,
        file: &mut impl FnMut(&str) -> io::Result<Vec<u8>>,
    ) -> Result<(), ReadError> {
        let mut open = |name: &[u8]| {
            let name = String::from_utf8_lossy(name);
            file(&name).map_err(|error| {
                let place = if name == "-" { "standard input" } else { &name };
                ReadError::new(Kind::Unreadable).at(place).caused_by(error)
            })
        };
        match name {
            "header" => match value.strip_prefix(b"@") {
                Some(path) => {
                    let lines = http(open(path)?, UnixSeconds::new(0))?;
                    self.headers.extend(lines.headers);
                }
                None => self.header(&value)?,
            },
            "request" => self.method = Some(String::from_utf8_lossy(&value).into_owned()),
            "url" => self.url = Some(String::from_utf8_lossy(&value).into_owned()),
            "user-agent" => self.headers.push(("user-agent".into(), value.into())),
            "data" | "data-ascii" => match value.strip_prefix(b"@") {
                Some(path) => {
                    let mut text = open(path)?;
                    text.retain(|byte| !b"\r\n\0".contains(byte));
                    self.add(&text);
                }
                None => self.add(&value),
            },
            "data-raw" => self.add(&value),
            "data-binary" => match value.strip_prefix(b"@") {
                Some(path) => self.add(&open(path)?),
                None => self.add(&value),
            },
            "json" => {
                self.json = true;
                let text = match value.strip_prefix(b"@") {
                    Some(path) => open(path)?,
                    None => value,
                };
                self.body.get_or_insert_default().extend_from_slice(&text);
            }
            "data-urlencode" => {
                let at = value.iter().position(|byte| b"=@".contains(byte));
                let (name, rest) = value.split_at(at.unwrap_or(0));
                let content = match rest.split_first() {
                    Some((b'@', path)) if at.is_some() => open(path)?,
                    Some((b'=', content)) if at.is_some() => content.to_vec(),
                    _ => rest.to_vec(),
                };
                let sign: &[u8] = if name.is_empty() { b"" } else { b"=" };
                self.add(&[name, sign, percent_encoded(&content).as_bytes()].concat());
            }
            "upload-file" => {
                self.upload = true;
                self.body = Some(open(&value)?);
            }
            "form" | "form-string" => return Err(ReadError::new(Kind::Multipart)),
            _ => {}
        }
        Ok(())
    }

    fn header(&mut self, line: &[u8]) -> Result<(), ReadError> {
        let bad = || ReadError::new(Kind::BadHeader).at("-H");
        let end = line.iter().position(|byte| b":;".contains(byte));
        let (name, value) = line.split_at(end.ok_or_else(bad)?);
        let name = std::str::from_utf8(name).map_err(|_| bad())?.trim();
        let lower = name.to_ascii_lowercase();
        let (sign, value) = value.split_first().ok_or_else(bad)?;
        let value = value.trim_ascii();
        match (sign, value) {
            // `Name:` removes a header, `Name;` sends it empty.
            (b':', b"") => self.unset.push(lower),
            (b':', value) => self.headers.push((lower, Bytes::copy_from_slice(value))),
            (_, b"") => self.headers.push((lower, Bytes::new())),
            _ => return Err(bad()),
        }
        Ok(())
    }

    fn add(&mut self, text: &[u8]) {
        match &mut self.body {
            Some(body) => {
                body.push(b'&');
                body.extend_from_slice(text);
            }
            body => *body = Some(text.to_vec()),
        }
    }

    fn into_delivery(mut self, received_at: UnixSeconds) -> Result<LoggedDelivery, ReadError> {
        let is_said = |headers: &[(String, Bytes)], unset: &[String], name: &str| {
            headers.iter().any(|(other, _)| other == name)
                || unset.iter().any(|other| other == name)
        };
        let default = if self.json {
            "application/json"
        } else {
            "application/x-www-form-urlencoded"
        };
        let body = self.body.filter(|_| !self.in_query);
        if body.is_some() && !self.upload && !is_said(&self.headers, &self.unset, "content-type") {
            let value = Bytes::from_static(default.as_bytes());
            self.headers.push(("content-type".into(), value));
        }
        if self.headers.is_empty() {
            return Err(ReadError::new(Kind::NoHeaders));
        }
        let method = match (self.method, &body, self.upload) {
            (Some(method), _, _) => method,
            (None, Some(_), false) => "POST".into(),
            (None, _, true) => "PUT".into(),
            (None, None, false) => "GET".into(),
        };
        let mut delivery = LoggedDelivery::new(received_at, self.headers, body.unwrap_or_default());
        delivery.method = method;
        if let Some(url) = self.url {
            delivery.target = target(&url);
        }
        Ok(delivery)
    }
}

/// Returns the path and query of an address.
fn target(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find(['/', '?']).and_then(|at| rest.get(at..));
    let path = path.unwrap_or("/").split('#').next().unwrap_or_default();
    match path.starts_with('/') {
        true => path.to_owned(),
        false => format!("/{path}"),
    }
}

fn percent_encoded(text: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode = |&byte: &u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.iter().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::LoggedDeliveryExt;

    fn read(command: &str) -> Result<LoggedDelivery, ReadError> {
        curl(command, UnixSeconds::new(0), |name| match name {
            "body.json" => Ok(b"{\r\n1}\n".to_vec()),
            "head.txt" => Ok(b"X-A: 1\nX-B: 2\n".to_vec()),
            _ => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn body(command: &str) -> String {
        let body = read(command).unwrap().body.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[test]
    fn what_a_browser_copies_is_read() {
        let read = read("curl 'https://example.org/webhooks?a=1#x' \\\n  -X 'PUT' \\\n  -H 'Content-Type: application/json' \\\n  -H 'X-Service-Timestamp: 1763690000' \\\n  --compressed --insecure \\\n  --data-raw $'{\"name\":\"it\\'s \\u00fc\"}' ; echo done").unwrap();
        assert_eq!((&*read.method, &*read.target), ("PUT", "/webhooks?a=1"));
        assert_eq!(read.header("x-service-timestamp").unwrap(), "1763690000");
        assert_eq!(read.headers.len(), 2);
        assert_eq!(
            read.body.as_deref().unwrap(),
            "{\"name\":\"it's ü\"}".as_bytes()
        );
    }

    #[test]
    fn data_is_what_curl_makes_of_it() {
        for (command, expected) in [
            ("curl x -d a -d b", "a&b"),
            ("curl x -d @body.json", "{1}"),
            ("curl x --data-binary @body.json", "{\r\n1}\n"),
            ("curl x --data-raw @body.json", "@body.json"),
            ("curl x --json '{' --json '}'", "{}"),
            ("curl x -T body.json -H 'a: b'", "{\r\n1}\n"),
            (
                "curl x --data-urlencode 'payload={ü}'",
                "payload=%7B%C3%BC%7D",
            ),
            ("curl x --data-urlencode 'a b'", "a%20b"),
            ("curl x -sSda", "a"),
            ("$ curl -o out -m 5 x -dab --max-time 5 --unheard-of", "ab"),
            ("curl.exe x -G -d a=b -H 'a: b'", ""),
        ] {
            assert_eq!(body(command), expected, "{command}");
        }
    }

    #[test]
    fn a_command_that_a_log_gives_is_read_back_whatever_its_body_is() {
        for body in [
            &b"{}"[..],
            b"",
            b"{\r\n}",
            b"\xff\x00\x1b",
            "\u{202e}'".as_bytes(),
        ] {
            let body = Bytes::copy_from_slice(body);
            let at = UnixSeconds::new(1);
            let logged = LoggedDelivery::new(at, [("a", "b")], body.clone());
            let command = logged.to_curl("http://127.0.0.1:1/x").unwrap();
            let read = read(&command).unwrap();
            assert_eq!(read.body, Some(body), "{command}");
            assert_eq!(read.header("a").map(|value| &**value), Some(&b"b"[..]));
        }
        for other in [
            "printf %s 'e30=' | base64 -d",
            "printf %s x | cat | curl x",
            "printf %s '!' | base64 -d | curl x",
        ] {
            assert_eq!(read(other).unwrap_err().kind(), Kind::NotCurl, "{other}");
        }
    }

    #[test]
    fn headers_are_those_that_curl_sends() {
        let headers = |command: &str| {
            let headers = read(command).unwrap().headers;
            let text = |(name, value): (String, Bytes)| {
                format!("{name}={}", String::from_utf8_lossy(&value))
            };
            headers.into_iter().map(text).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            headers("curl x -H @head.txt -H 'X-C;' -H 'X-D:' -HX-E:5"),
            "x-a=1 x-b=2 x-c= x-e=5"
        );
        assert_eq!(
            headers("curl x -d a"),
            "content-type=application/x-www-form-urlencoded"
        );
        assert_eq!(headers("curl x --json a"), "content-type=application/json");
        assert_eq!(
            headers("curl x -A me -d a -H 'Content-Type:'"),
            "user-agent=me"
        );
        assert_eq!(read("curl x -d a").unwrap().method, "POST");
        assert_eq!(read("curl -H 'a: b' -- x").unwrap().method, "GET");
    }

    #[test]
    fn what_can_not_be_read_is_named() {
        for (command, kind, place) in [
            ("wget x", Kind::NotCurl, ""),
            ("", Kind::NotCurl, ""),
            ("curl x -d", Kind::MissingValue, "-d: "),
            ("curl x --header", Kind::MissingValue, "--header: "),
            ("curl x -d @none", Kind::Unreadable, "none: "),
            ("curl x -d @-", Kind::Unreadable, "standard input: "),
            ("curl x -F a=b", Kind::Multipart, ""),
            ("curl x -H nonsense", Kind::BadHeader, "-H: "),
            ("curl x -d 'a", Kind::BadQuoting, ""),
            (
                "curl x -H \"X-Service-Signature: $signature\"",
                Kind::Variable,
                "",
            ),
            ("curl x", Kind::NoHeaders, ""),
        ] {
            let error = read(command).unwrap_err();
            assert_eq!(error.kind(), kind, "{command}");
            assert!(error.to_string().starts_with(place), "{error}");
        }
    }
}
