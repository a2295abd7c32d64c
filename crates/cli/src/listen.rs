//! `hookgate listen`: a receiver on this machine that shows the deliveries it gets.

mod answers;
mod filter;
mod inspected;
pub(crate) mod item;
mod lines;
pub(crate) mod pretty;
mod server;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use hookgate::Verifier;
use hookgate::lookup::Keys;
use hookgate_record::Recorder;
use hookgate_testing::explain::Explainer;
use http::{HeaderName, HeaderValue, StatusCode, Uri};
use tokio::net::TcpListener;

use crate::address::{FREE, cannot_listen, host_and_port};
use crate::durations;
use crate::event_types;
use crate::fault::{Class, Fault, INTERRUPTED, note, warn};
use crate::http_client::{HttpClient, target};
use crate::interrupt::{Signal, Signals, block_on_until_done};
use crate::out::Out;
use crate::secrets::SecretArgs;
use crate::send::header;
use answers::Again;
use answers::Answers;
use answers::Forward;
use filter::{EventTypes, Filter};
use inspected::{Kept, Settings};
use lines::DisplayQueue;
use lines::Lines;
use server::{Reporter, Server};

/// The options of `hookgate listen`.
#[derive(clap::Args, Debug)]
pub(crate) struct Listen {
    /// The address to listen on. Port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8787", value_parser = host_and_port)]
    addr: String,
    /// The path that deliveries are taken at
    #[arg(long, value_name = "PATH", default_value = "/webhooks", value_parser = path)]
    path: String,
    /// Pass verified deliveries on to this URL, byte for byte, and answer as it answers; 502 if it
    /// can't be reached
    #[arg(long, value_name = "URL", conflicts_with = "status")]
    forward: Option<String>,
    /// The most time for an answer of the server behind --forward, such as 10s or 500ms. The sender
    /// is answered 503 after 4.5 s; a later answer still counts
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = answer_limit)]
    forward_timeout: Duration,
    /// Record every delivery to this file, which `hookgate explain`, `log` and `replay` read. It
    /// holds whole bodies
    #[arg(long, value_name = "LOG")]
    record: Option<PathBuf>,
    /// Set this header on each request that is passed on; it replaces a received header of that
    /// name. May be given several times
    #[arg(long, value_name = "NAME: VALUE", requires = "forward", value_parser = header)]
    header: Vec<(HeaderName, HeaderValue)>,
    /// The types of events that are handled: row.created,row.deleted, or row.*. Others are answered
    /// 204, neither passed on nor shown, and counted
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = event_type)]
    events: Vec<String>,
    /// Print only deliveries with these words: "a phrase", type:row., outcome:refused, or a field
    /// of the body, data.properties.Customer:"Ada"
    #[arg(long, value_name = "WORDS", default_value = "")]
    filter: String,
    /// The status that answers verified deliveries [default: 204, or 200 with --body]
    #[arg(long, value_name = "STATUS", value_parser = status)]
    status: Option<StatusCode>,
    /// The body that answers verified deliveries: application/json where it is JSON, text/plain
    /// where it is not
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        conflicts_with = "forward"
    )]
    body: String,
    /// Wait before each answer, such as 6s or 500ms. The sender is answered 503 after 4.5 s, and
    /// the delivery still counts as handled at its end
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = durations::parse)]
    delay: Duration,
    /// Answer 500 to this many runs before the first that succeeds
    #[arg(long, value_name = "N", default_value_t = 0)]
    fail_first: u64,
    /// Begin the page's list with the deliveries of this log; it may be the file of --record
    #[arg(long, value_name = "LOG", requires = "page")]
    log: Option<PathBuf>,
    /// The most deliveries that the page keeps; and no more than 64 MiB of them
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    keep: usize,
    /// Show the deliveries on a page in the browser too, at this address of this machine; without
    /// one, at a free port
    #[arg(long, value_name = "HOST:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = host_and_port)]
    page: Option<String>,
    #[command(flatten)]
    secrets: SecretArgs,
}

fn path(text: &str) -> Result<String, String> {
    let is_path = text
        .parse::<Uri>()
        .is_ok_and(|uri| uri.authority().is_none() && uri.path() == text);
    if text.starts_with('/') && is_path {
        return Ok(text.to_owned());
    }
    Err("a path begins with / and has no query".to_owned())
}

fn event_type(text: &str) -> Result<String, String> {
    if text.is_empty() || text.trim() != text {
        return Err(
            "types are separated by commas, without blanks: row.created,row.deleted".to_owned(),
        );
    }
    event_types::known(text)?;
    Ok(text.to_owned())
}

fn answer_limit(text: &str) -> Result<Duration, String> {
    match durations::parse(text)? {
        Duration::ZERO => Err("no server answers in no time: give 10s or 500ms".to_owned()),
        limit => Ok(limit),
    }
}

fn status(text: &str) -> Result<StatusCode, String> {
    let advice = "a status is a number from 200 to 599";
    let status: u16 = text.parse().map_err(|_| advice)?;
    match StatusCode::from_u16(status) {
        Ok(status) if (200..600).contains(&status.as_u16()) => Ok(status),
        _ => Err(advice.to_owned()),
    }
}

/// The time that requests and runs under way get at the end.
const TO_END: Duration = Duration::from_secs(10);

pub(crate) fn run(args: Listen, out: &mut Out) -> Result<ExitCode, Fault> {
    // Tasks that still run at the end, such as a request to a server that hangs, are not waited
    // for.
    block_on_until_done(listen(args, out))
}

async fn listen(args: Listen, out: &mut Out) -> Result<ExitCode, Fault> {
    let forward = args.forward.as_deref().map(target).transpose()?;
    let status = args.answer_status()?;
    let events = EventTypes::new(&args.events);
    let (ring, secret) = args.secrets.ring_and_first()?;
    let keys = Keys::single(ring);
    let listener = bind(&args.addr).await?;
    let address = listener.local_addr()?;
    let url = format!("http://{address}{}", args.path);
    let client = HttpClient::new()?;
    let own = reached_from_here(address, &args.path);
    let again = Again {
        client: client.clone(),
        secret: secret.clone(),
    };
    if let Some(forward) = &forward {
        refuse_a_circle(forward, address)?;
    }
    let mut signals = Signals::listen()?;
    let (page_queue, page_deliveries, _) = DisplayQueue::new();
    let page = match &args.page {
        Some(page) => {
            let kept = Kept::new(Settings {
                most: args.keep,
                explainer: explainer(&args.secrets)?,
                again,
                next: format!(
                    "hookgate send row.created --to {own}{}",
                    args.secrets.options()
                ),
                own,
                forward: forward.clone(),
                events: events.clone(),
            });
            // The first recording has nothing to read yet.
            let is_new =
                args.log == args.record && args.log.as_ref().is_some_and(|log| !log.exists());
            if let Some(log) = args.log.as_deref().filter(|_| !is_new) {
                kept.load(log, &Verifier::new(keys.clone()))?;
            }
            Some(inspected::serve(page, kept, page_deliveries).await?)
        }
        None => None,
    };
    let recorder = args.record.as_deref().map(recorder).transpose()?;
    let (display, deliveries, dropped) = DisplayQueue::new();
    let answers = Answers {
        status,
        content_type: answers::content_type(args.body.as_bytes()),
        body: args.body.into(),
        events: events.clone(),
        delay: args.delay,
        fail_first: args.fail_first.into(),
        forward: forward.clone().map(|url| Forward {
            client: client.clone().with_timeout(args.forward_timeout),
            url,
            headers: args.header,
        }),
    };
    let server = Server::start(
        listener,
        &args.path,
        keys,
        answers,
        Reporter {
            events: events.clone(),
            display,
            page: page.is_some().then_some(page_queue),
            recorder: recorder.clone(),
        },
    )?;
    let warning = (!address.ip().is_loopback()).then(|| {
        format!(
            "{address} is reached from other machines; what is not signed is refused, but shown"
        )
    });

    if let Some(warning) = warning {
        warn(
            &warning,
            "leave --addr out if no other machine must reach it",
        );
    }
    let mut json = serde_json::json!({ "listening": url });
    let mut text = format!("listening on {url}");
    if let Some(page) = page {
        text = format!("{text}, page at {page}");
        json["page"] = page.into();
    }
    out.say(&text, &json)?;
    out.flush()?;
    let lines = Lines {
        out: Out::new(out.is_json()),
        filter: Filter::parse(&args.filter),
        deliveries,
        dropped,
    };
    let end = print(lines, &mut signals).await;
    let mut interrupted = Box::pin(async { while signals.next().await != Signal::Interrupt {} });
    tokio::select! {
        () = server.stop(TO_END) => {}
        // Ctrl-C during the wait ends it at once.
        () = &mut interrupted => {}
    }
    if let Some(recorder) = recorder {
        flush_and_warn(&recorder, args.record.as_deref());
    }
    match events.left_out() {
        0 => {}
        1 => note("1 delivery was left out by --events"),
        some => note(&format!("{some} deliveries were left out by --events")),
    }
    Ok(match end? {
        Some(Signal::Interrupt) => ExitCode::from(INTERRUPTED),
        _ => ExitCode::SUCCESS,
    })
}

impl Listen {
    fn answer_status(&self) -> Result<StatusCode, Fault> {
        let default = if self.body.is_empty() {
            StatusCode::NO_CONTENT
        } else {
            StatusCode::OK
        };
        let status = self.status.unwrap_or(default);
        let has_none = [
            StatusCode::NO_CONTENT,
            StatusCode::RESET_CONTENT,
            StatusCode::NOT_MODIFIED,
        ];
        if !self.body.is_empty() && has_none.contains(&status) {
            let what = format!("an answer {} has no body", status.as_u16());
            return Err(Fault::new(Class::Usage, what).advise("leave --status or --body out"));
        }
        Ok(status)
    }
}

/// Returns an explainer with the secrets as they are configured, since the configuration may be
/// wrong. `None` if the secret was typed: the user is not asked for it a second time.
fn explainer(secrets: &SecretArgs) -> Result<Option<Explainer>, Fault> {
    if secrets.given().is_empty() {
        return Ok(None);
    }
    let mut explainer = Explainer::new();
    for (name, text) in secrets.as_configured()? {
        explainer = explainer.secret(&name, &*text);
    }
    Ok(Some(explainer))
}

fn recorder(path: &Path) -> Result<Recorder, Fault> {
    Recorder::to(path).open().map_err(|error| {
        let what = format!("{} can't be recorded to", path.display());
        Fault::caused_by(Class::Input, &what, &error)
            .advise("give a file that you may write, in a directory that exists")
    })
}

/// Reports the deliveries that are missing from the log although they arrived.
fn flush_and_warn(recorder: &Recorder, path: Option<&Path>) {
    let is_complete = recorder.flush(TO_END);
    let path = path.map(Path::display);
    let log = path.map(|path| path.to_string()).unwrap_or_default();
    let what = match recorder.dropped() {
        0 if is_complete => return,
        0 => format!("the last deliveries are not in {log} yet"),
        dropped => format!("{dropped} deliveries are missing in {log}"),
    };
    warn(&what, "look whether its disk is full");
}

async fn bind(address: &str) -> Result<TcpListener, Fault> {
    let message = format!("can't listen on {address}");
    let bound = TcpListener::bind(address).await;
    bound.map_err(|error| cannot_listen(&message, FREE, &error))
}

/// Returns an error if `forward` is this receiver: each delivery would arrive here again while its
/// event is being handled, and would be answered 503 in the end.
fn refuse_a_circle(forward: &Uri, address: SocketAddr) -> Result<(), Fault> {
    let of_scheme = match forward.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let port = forward.port_u16().unwrap_or(of_scheme);
    let host = forward.host().unwrap_or_default();
    let ip = host.trim_matches(['[', ']']).parse();
    let is_here = host.eq_ignore_ascii_case("localhost")
        || ip.is_ok_and(|ip: std::net::IpAddr| ip.is_loopback() || ip == address.ip());
    if is_here && port == address.port() {
        return Err(Fault::new(
            Class::Usage,
            "--forward is the address of this receiver itself",
        )
        .advise("give the address of the server that handles the events"));
    }
    Ok(())
}

fn reached_from_here(address: SocketAddr, path: &str) -> Uri {
    let mut address = address;
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    // An address and a path that was checked make a URI.
    format!("http://{address}{path}")
        .parse()
        .unwrap_or_default()
}

/// Prints on a thread of its own, so that a slow reader delays no signal. Returns the signal that
/// ended it, or `None` when the reader has closed the pipe.
async fn print(lines: Lines, signals: &mut Signals) -> Result<Option<Signal>, Fault> {
    let printing = tokio::task::spawn_blocking(move || lines.print());
    tokio::select! {
        printed = printing => match printed {
            Ok(Err(error)) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(None),
        },
        signal = signals.next() => Ok(Some(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_back_to_this_receiver_is_refused() {
        let refused = |forward: &str, address: &str| {
            refuse_a_circle(&forward.parse().unwrap(), address.parse().unwrap()).is_err()
        };
        for forward in [
            "http://localhost:8787/",
            "http://LOCALHOST:8787/",
            "http://127.0.0.1:8787/other",
            "http://[::1]:8787/",
            "https://192.0.2.7:8787/",
        ] {
            assert!(refused(forward, "192.0.2.7:8787"), "{forward}");
        }
        assert!(refused("https://127.0.0.1/", "127.0.0.1:443"));
        assert!(refused("http://127.0.0.1/", "127.0.0.1:80"));
        for forward in [
            "http://127.0.0.1:8788/",
            "http://192.0.2.8:8787/",
            "https://127.0.0.1/",
        ] {
            assert!(!refused(forward, "192.0.2.7:8787"), "{forward}");
        }
    }
}
