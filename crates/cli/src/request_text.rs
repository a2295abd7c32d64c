//! A request as text: as it goes over the wire, as a curl command, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;

use hookgate::clock::UnixSeconds;
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;

use crate::fault::Fault;
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
        Form::Curl => Ok(out.line(&curl(request))?),
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
    out.raw(request.body())?;
    Ok(out.line("")?)
}

fn curl(request: &Request<Bytes>) -> String {
    let headers = request.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.as_str(), Bytes::copy_from_slice(value.as_bytes())));
    // No time belongs to it: a command has none.
    let delivery = LoggedDelivery::new(UnixSeconds::new(0), headers, request.body().clone());
    let command = delivery.to_curl(&request.uri().to_string());
    command.unwrap_or_default() // it has a body
}
