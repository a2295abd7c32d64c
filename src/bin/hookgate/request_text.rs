//! A request as text: as it goes over the wire, as a curl command, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;

use crate::fault::{Class, Fault};
use crate::out::Out;

#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Form {
    /// As it goes over the wire.
    Http,
    /// As a curl command.
    Curl,
}

pub(crate) fn print(form: Form, request: &Request<Bytes>, out: &mut Out) -> Result<(), Fault> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: Vec<(&str, String)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect();
    if out.is_json() {
        return json(request, &headers, out);
    }
    match form {
        Form::Http => http(request, &headers, out),
        Form::Curl => Ok(out.line(&curl(request, &headers)?)?),
    }
}

fn json(request: &Request<Bytes>, headers: &[(&str, String)], out: &mut Out) -> Result<(), Fault> {
    let mut value = serde_json::json!({
        "method": request.method().as_str(),
        "url": request.uri().to_string(),
        "headers": headers,
    });
    match std::str::from_utf8(request.body()) {
        Ok(text) => value["body"] = text.into(),
        Err(_) => value["bodyBase64"] = STANDARD.encode(request.body()).into(),
    }
    Ok(out.json_line(&value)?)
}

fn http(request: &Request<Bytes>, headers: &[(&str, String)], out: &mut Out) -> Result<(), Fault> {
    let uri = request.uri();
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    out.line(&format!("{} {path} HTTP/1.1", request.method()))?;
    let host = uri.authority().map_or("", |host| host.as_str());
    out.line(&format!("host: {host}"))?;
    for (name, value) in headers {
        out.line(&format!("{name}: {value}"))?;
    }
    out.line(&format!("content-length: {}\n", request.body().len()))?;
    out.bytes(request.body())?;
    Ok(out.line("")?)
}

fn curl(request: &Request<Bytes>, headers: &[(&str, String)]) -> Result<String, Fault> {
    let body = std::str::from_utf8(request.body()).ok();
    let body = body.filter(|body| !body.contains('\0')).ok_or_else(|| {
        Fault::new(
            Class::Input,
            "the body is no text, which a command line can't hold",
        )
        .advise("print it with --dry-run=http")
    })?;
    let quoted = |text: &str| shell_words::quote(text).into_owned();
    // `--data-raw` takes the text as it is; `--data` would take one that begins with `@` for the name of a file.
    let mut words = vec!["curl".to_owned(), "--data-raw".to_owned(), quoted(body)];
    for (name, value) in headers {
        words.push("-H".to_owned());
        words.push(quoted(&format!("{name}: {value}")));
    }
    words.push(quoted(&request.uri().to_string()));
    Ok(words.join(" "))
}
