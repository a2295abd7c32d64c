//! `hookgate send`: one signed delivery, valid or broken, and the meaning of the answer.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use serde::Serialize;

use hookgate::{
    clock::{Clock, ManualClock, SystemClock, UnixSeconds},
    dedupe::RetrySchedule,
};
use hookgate_record::LoggedDelivery;
use hookgate_testing::factory::{EVENT_TYPES, EventFactory, SampleEvent};
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::sender::{Tamper, meaning};
use hookgate_testing::{Signer, Transport};

use crate::delivery_input::bytes_of;
use crate::event_types::is_near;
use crate::fault::{Class, Fault, answer, note};
use crate::http_client::{HttpClient, target, unreachable};
use crate::out::Out;
use crate::printable::printable;
use crate::secrets::{SchemeArgs, SecretArgs};
use crate::{durations, interrupt};

/// Sign a sample event and deliver it, as the service would.
///
/// The exit code is 0 where every delivery was answered 2xx, as the service asks for, and 1 where
/// one was not.
#[derive(clap::Args)]
pub(crate) struct SendArgs {
    /// The event's type: row.created, row.updated, row.deleted, page.created, page.updated,
    /// page.deleted, member.invited, member.removed, or any other text.
    event_type: Option<String>,
    /// Where to: the subscription's URL.
    #[arg(long, value_name = "URL")]
    to: String,
    /// Set a place of the event: --set data.properties.Total=12.50. The value is JSON where it is
    /// JSON, and text otherwise; a place that does not exist is made; `\.` is a dot inside a name.
    /// Repeatable.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Send the body in this file, byte for byte, or the standard input (-).
    #[arg(long, value_name = "FILE", conflicts_with = "event_type")]
    body: Option<PathBuf>,
    /// The event's id, in place of a new one.
    #[arg(long)]
    id: Option<String>,
    /// Send the same event this many times, one after the other.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Change something behind the signing.
    #[arg(long, value_name = "WHAT")]
    tamper: Option<TamperArg>,
    /// Sign as of so long ago: 400s, 5min. A time ahead is negative: -30s.
    #[arg(long, value_name = "DURATION", default_value = "0s", allow_hyphen_values = true, value_parser = age)]
    age: i64,
    /// The subscription's id, for X-Service-Webhook-Id.
    #[arg(long, value_name = "ID", default_value = "wh_1")]
    subscription: String,
    #[command(flatten)]
    scheme: SchemeArgs,
    /// Send this header, in place of the service's own of that name. Repeatable; a name given twice
    /// is sent twice.
    #[arg(long, value_name = "NAME: VALUE", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// Send nothing: print the request, signature included, as it would go over the wire or as a
    /// curl command.
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "http")]
    dry_run: Option<Form>,
    #[command(flatten)]
    secret: SecretArgs,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum TamperArg {
    /// A space more in the body.
    Body,
    /// Another last digit of the signature.
    Signature,
    /// A timestamp a second later than the one that was signed.
    Timestamp,
    /// A header that names another event than the body.
    Header,
}

pub(crate) fn run(args: &SendArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let to = target(&args.to)?;
    signed_at(args)?;
    let signer = signer(args)?;
    let body = body(args)?;
    if let Some(form) = args.dry_run {
        print(form, &request(args, &to, &signer, body), out)?;
        return Ok(answer(true));
    }
    let client = HttpClient::new()?;
    interrupt::block_on(deliver_all(args, &to, &signer, &body, &client, out))
}

async fn deliver_all(
    args: &SendArgs,
    to: &Uri,
    signer: &Signer,
    body: &Bytes,
    client: &HttpClient,
    out: &mut Out,
) -> Result<ExitCode, Fault> {
    let limit = RetrySchedule::SERVICE.attempt_timeout();
    let sent = SampleEvent::of_json(String::from_utf8_lossy(body));
    let mut all_accepted = true;
    for _ in 0..args.repeat {
        // Signed again each time, as the service does.
        let request = request(args, to, signer, body.clone());
        let started = tokio::time::Instant::now();
        let answered = tokio::time::timeout(limit, client.deliver(request)).await;
        let elapsed = started.elapsed();
        let line = match answered {
            Ok(Ok(response)) => Line::new(&sent, Some(&response), elapsed),
            Ok(Err(error)) => return Err(unreachable(to, &error)),
            Err(_) => Line::new(&sent, None, elapsed),
        };
        all_accepted &= line.accepted;
        out.say(&line.text(), &line)?;
        out.flush()?;
    }
    Ok(answer(all_accepted))
}

/// The result of one delivery.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    event_id: Option<String>,
    event_type: Option<String>,
    /// Absent where no answer came in time.
    status: Option<u16>,
    accepted: bool,
    replayed: bool,
    elapsed_ms: u128,
    meaning: &'static str,
    /// The receiver's answer, where it did not accept.
    said: Option<String>,
}

impl Line {
    /// Without a response, no answer came in time.
    fn new(sent: &SampleEvent, response: Option<&Response<Bytes>>, elapsed: Duration) -> Self {
        const LONGEST: usize = 300;
        let status = response.map(Response::status);
        let accepted = status.is_some_and(|status| status.is_success());
        let replayed = response.is_some_and(|it| it.headers().contains_key("idempotent-replayed"));
        let said = response.map(|response| String::from_utf8_lossy(response.body()));
        let said = said.map(|text| text.chars().take(LONGEST).collect::<String>());
        Self {
            event_id: sent.event_id(),
            event_type: sent.event_type(),
            status: status.map(|status| status.as_u16()),
            accepted,
            replayed,
            elapsed_ms: elapsed.as_millis(),
            meaning: match status {
                _ if replayed => "handled before: this copy ran nothing",
                Some(status) => meaning(status.as_u16()),
                None => "no answer within 5 s: the service hangs up and sends it again",
            },
            said: said.filter(|said| !accepted && !said.is_empty()),
        }
    }

    fn text(&self) -> String {
        let id = self.event_id.as_deref().unwrap_or("(no id)");
        let event_type = self.event_type.as_deref().unwrap_or("(no type)");
        let status = match self.status {
            Some(status) => status.to_string(),
            None => "no answer".to_owned(),
        };
        let millis = self.elapsed_ms;
        let (id, event_type) = (printable(id), printable(event_type));
        let mut text = format!("{id} {event_type}: {status} in {millis} ms");
        if !self.accepted || self.replayed {
            text = format!("{text}\n  {}", self.meaning);
        }
        if let Some(said) = &self.said {
            text = format!("{text}\n  the receiver said: {}", printable(said));
        }
        text
    }
}

fn signer(args: &SendArgs) -> Result<Signer, Fault> {
    let signer = args.scheme.signer(args.secret.first()?, None)?;
    named(signer, &args.subscription)
}

/// Names the subscription, as a header can.
pub(crate) fn named(signer: Signer, id: &str) -> Result<Signer, Fault> {
    HeaderValue::from_str(id).map_err(|_| {
        Fault::new(Class::Usage, "the subscription's id fits no header")
            .advise("copy it from the subscription's settings, without line breaks: wh_1")
    })?;
    Ok(signer.subscription(id))
}

fn body(args: &SendArgs) -> Result<Bytes, Fault> {
    let given = match &args.body {
        Some(path) => Some(Bytes::from(bytes_of("the body", path)?)),
        None => None,
    };
    if given.is_some() && args.set.is_empty() && args.id.is_none() {
        return Ok(given.unwrap_or_default());
    }
    let mut event = match given {
        Some(bytes) => SampleEvent::of_json(String::from_utf8(bytes.into()).map_err(|_| {
            Fault::new(
                Class::Input,
                "the body is not UTF-8, so nothing can be set in it",
            )
            .advise("send it as it is, without --set and --id")
        })?),
        None => sample(args)?,
    };
    if let Some(id) = &args.id {
        event = event.id(id);
    }
    for set in &args.set {
        let (path, value) = set.split_once('=').ok_or_else(|| {
            Fault::new(Class::Usage, format!("--set {set} has no `=`"))
                .advise("write --set data.properties.Total=12.50")
        })?;
        event = event.set(path, value).map_err(|error| {
            Fault::caused_by(Class::Usage, &format!("--set {set} can't be done"), &error)
                .advise("write --set data.properties.Total=12.50")
        })?;
    }
    Ok(event.body())
}

fn sample(args: &SendArgs) -> Result<SampleEvent, Fault> {
    let event_type = args.event_type.as_deref().ok_or_else(|| {
        let types = EVENT_TYPES.join(", ");
        Fault::new(Class::Usage, "no event type is given")
            .advise(format!("name one: {types}; or give --body FILE"))
    })?;
    let known = EVENT_TYPES.contains(&event_type);
    let meant = EVENT_TYPES.iter().find(|known| is_near(known, event_type));
    if let (false, Some(meant)) = (known, meant) {
        let message = format!("{event_type} is none of the service's types: did you mean {meant}?");
        return Err(Fault::new(Class::Usage, message).advise(format!(
            "to send it all the same, give {meant} and --set type={event_type}"
        )));
    }
    if !known {
        let known = EVENT_TYPES.join(", ");
        note(&format!(
            "{event_type} is none of the service's types: {known}"
        ));
    } else if !event_type.starts_with("row.") {
        note("the service's specification shows no payload of this type: the data sent is made up");
    }
    let created = ManualClock::at(signed_at(args)?);
    Ok(EventFactory::seeded(fastrand::u64(..))
        .with_clock(created)
        .of_type(event_type))
}

/// Sets these headers in place of all values that they had.
pub(crate) fn set_headers(headers: &mut HeaderMap, own: &[(HeaderName, HeaderValue)]) {
    for (name, _) in own {
        headers.remove(name);
    }
    for (name, value) in own {
        headers.append(name, value.clone());
    }
}

fn request(args: &SendArgs, to: &Uri, signer: &Signer, body: Bytes) -> Request<Bytes> {
    // It could be written when the command began.
    let at = signed_at(args).unwrap_or_else(|_| SystemClock.now());
    let mut request = signer.clone().at(at).request("/", body);
    *request.uri_mut() = to.clone();
    set_headers(request.headers_mut(), &args.header);
    match args.tamper {
        None => request,
        Some(TamperArg::Body) => Tamper::Body.apply(request),
        Some(TamperArg::Signature) => Tamper::Signature.apply(request),
        Some(TamperArg::Timestamp) => Tamper::Timestamp.apply(request),
        Some(TamperArg::Header) => Tamper::EventId.apply(request),
    }
}

/// The second to sign as of, where the service can write it.
fn signed_at(args: &SendArgs) -> Result<UnixSeconds, Fault> {
    let at = UnixSeconds::new(SystemClock.now().as_i64().saturating_sub(args.age));
    match hookgate::verify::Timestamp::at(at) {
        Ok(_) => Ok(at),
        Err(_) => Err(Fault::new(
            Class::Usage,
            "at that age the timestamp lies before 1970, or too far ahead to be written",
        )
        .advise("the service's window is 300 s: --age 400s is stale, --age -400s too early")),
    }
}

/// Whole seconds in either direction.
fn age(text: &str) -> Result<i64, String> {
    let (sign, text) = match text.trim().strip_prefix('-') {
        Some(ahead) => (-1, ahead),
        None => (1, text.trim()),
    };
    let seconds = durations::parse(text)?.as_secs();
    Ok(i64::try_from(seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(sign))
}

/// The headers of one connection, which say where a request ends.
pub(crate) const FRAMES: [&str; 7] = [
    "connection",
    "content-length",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads the value of `--header`.
pub(crate) fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("write NAME: VALUE")?;
    let name = HeaderName::try_from(name.trim()).map_err(|error| error.to_string())?;
    if FRAMES.contains(&name.as_str()) {
        return Err(format!(
            "{name} is the connection's own: it says where the request ends"
        ));
    }
    let value = HeaderValue::try_from(value.trim()).map_err(|error| error.to_string())?;
    Ok((name, value))
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// As it goes over the wire.
    Http,
    /// As a curl command.
    Curl,
}

/// A request as text: as it goes over the wire, as a curl command, as JSON.
fn print(form: Form, request: &Request<Bytes>, out: &mut Out) -> Result<(), Fault> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers: Vec<(&str, String)> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), text(value)))
        .collect();
    if out.is_json() {
        return as_json(request, &headers, out);
    }
    match form {
        Form::Http => as_http(request, &headers, out),
        Form::Curl => Ok(out.line(&as_curl(request))?),
    }
}

fn as_json(
    request: &Request<Bytes>,
    headers: &[(&str, String)],
    out: &mut Out,
) -> Result<(), Fault> {
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

fn as_http(
    request: &Request<Bytes>,
    headers: &[(&str, String)],
    out: &mut Out,
) -> Result<(), Fault> {
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

fn as_curl(request: &Request<Bytes>) -> String {
    let headers = request.headers().iter();
    let headers =
        headers.map(|(name, value)| (name.as_str(), Bytes::copy_from_slice(value.as_bytes())));
    // No time belongs to it: a command has none.
    let delivery = LoggedDelivery::new(UnixSeconds::new(0), headers, request.body().clone());
    let command = delivery.to_curl(&request.uri().to_string());
    command.unwrap_or_default() // it has a body
}
