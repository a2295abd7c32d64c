//! `hookgate emulate`: the Workspace Data Service on this machine.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use hookgate::Secret;
use hookgate_emulator::{Emulator, EmulatorBuilder, Seed, StartError};
use http::Uri;
use tokio::net::lookup_host;

use crate::address::{FREE, cannot_listen, host_and_port};
use crate::delivery_input::bytes_of;
use crate::fault::{Class, Fault, warn};
use crate::http_client::HttpClient;
use crate::interrupt;
use crate::out::Out;
use crate::secrets::DEFAULT_VARIABLE as SECRET;

/// The variable that may hold the token of an exposed emulator.
const TOKEN: &str = "HOOKGATE_EMULATOR_TOKEN";
/// The keys of the sample workspace.
const KEYS: [&str; 3] = ["tk_test_read", "tk_test_write", "tk_test_admin"];
/// The receiver of README and of `hookgate listen`, which the sample workspace delivers to.
const RECEIVER: (&str, &str) = (
    "http://127.0.0.1:8787/webhooks",
    "whsec_made_up_for_local_tries",
);

/// Run the whole service on this machine: its API, its signed webhooks with retries, and a page to
/// change rows on
///
/// The API is at /api/v1, the page at /, the control API at /_emulator. Without --seed the
/// workspace is a sample of orders, with the keys tk_test_read, tk_test_write and tk_test_admin,
/// and a subscription for the receiver of `cargo run --example receiver -- --try`. Its secret is
/// that of WEBHOOK_SECRET. Without that variable it is a published one, which begins with
/// whsec_made_up_.
#[derive(clap::Args)]
pub(crate) struct EmulateArgs {
    /// The address to listen on. Port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8788", value_parser = host_and_port)]
    addr: String,
    /// Begin with the workspace of this file, JSON in the form of docs/emulator.md
    #[arg(long, value_name = "FILE")]
    seed: Option<PathBuf>,
    /// Deliver the webhooks of the sample workspace to this URL [default:
    /// http://127.0.0.1:8787/webhooks]
    #[arg(long, value_name = "URL", conflicts_with = "seed")]
    to: Option<String>,
    /// Decide what the specification leaves open, such as rateLimit=off. May be given several
    /// times; GET /_emulator/switches lists all
    #[arg(long, value_name = "SWITCH=VALUE", value_parser = pair)]
    switch: Vec<(String, String)>,
    /// Switch a fault on from the start: for the first N deliveries or requests, or with seed:N for
    /// the cases that the number selects. May be given several times; GET /_emulator/faults/table
    /// lists all
    #[arg(long, value_name = "FAULT=N", value_parser = fault)]
    fault: Vec<(String, Drawn)>,
    /// Make ids from this number. The same number and the same requests make the same ids
    #[arg(long, value_name = "N", default_value_t = 1)]
    ids: u64,
    /// Keep the state in this file: restored at the start where it exists, written at the end. It
    /// holds secrets
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    state: Option<PathBuf>,
    /// Listen on an address that other machines reach. Control API and page then ask for a token,
    /// which is printed, or taken from HOOKGATE_EMULATOR_TOKEN
    #[arg(long)]
    expose: bool,
    /// Answer requests with this name in the header Host, beside localhost and the address itself.
    /// May be given several times
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Deliver to any host, over https too. Without it, deliveries go to this machine alone
    #[arg(long)]
    deliver_anywhere: bool,
}

impl EmulateArgs {
    /// Returns whether the workspace is the sample: no seed is given, and there is no state.
    fn is_sample(&self) -> bool {
        self.seed.is_none() && !self.state.as_ref().is_some_and(|path| path.exists())
    }

    fn to(&self) -> &str {
        self.to.as_deref().unwrap_or(RECEIVER.0)
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let pair = pair.ok_or("a switch is given as NAME=VALUE, such as rateLimit=off")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// Which deliveries or requests have a fault.
#[derive(Clone, Copy, Debug)]
enum Drawn {
    First(u64),
    Seeded(u64),
}

fn fault(text: &str) -> Result<(String, Drawn), String> {
    let drawn = |number: &str| match number.strip_prefix("seed:") {
        Some(seed) => seed.parse().ok().map(Drawn::Seeded),
        None => number.parse().ok().map(Drawn::First),
    };
    let pair = text.split_once('=');
    let parsed = pair.and_then(|(name, number)| Some((name.to_owned(), drawn(number)?)));
    parsed.ok_or_else(|| "a fault is given as FAULT=N or FAULT=seed:N, such as stale=3".to_owned())
}

pub(crate) fn run(args: &EmulateArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let own_secret = match args.is_sample() {
        true => own_secret()?,
        false => None,
    };
    let seed = seed(args, own_secret.as_deref())?;
    interrupt::block_on_until_done(emulate(args, seed, own_secret.is_some(), out))
}

async fn emulate(
    args: &EmulateArgs,
    seed: Seed,
    has_own_secret: bool,
    out: &mut Out,
) -> Result<ExitCode, Fault> {
    let address = address(args).await?;
    let is_sample = args.is_sample();
    if !is_sample && args.to.is_some() {
        return Err(Fault::new(
            Class::Usage,
            "--to is for the sample, and the file of --state has subscriptions of its own",
        )
        .advise("change the URL on the page, or leave out --to"));
    }
    let mut builder = settings(args, seed).address(address);
    if args.deliver_anywhere {
        builder = builder.transport(HttpClient::new()?);
    }
    // Also on a loopback address, to which a tunnel or a proxy of this machine leads.
    let token = (args.expose || !address.ip().is_loopback()).then(token);
    if let Some(token) = &token {
        builder = builder.token(token);
        if is_sample {
            let advice = "--seed FILE gives keys of your own";
            warn(
                "the API is exposed with the keys of the sample, which are known",
                advice,
            );
        }
    }
    let emulator = builder.start().await.map_err(|error| refused(&error))?;
    if let Some(path) = args.state.as_ref().filter(|_| !is_sample) {
        restore(&emulator, path)?;
    }
    let terminated = terminated();
    let sample = is_sample.then_some(args.to());
    tell(&emulator, token.as_deref(), sample, has_own_secret, out)?;
    let ended = interrupt::or_interrupted(terminated).await;
    if let Some(path) = &args.state {
        keep(&emulator, path)?;
    }
    ended.map(|()| ExitCode::SUCCESS)
}

fn settings(args: &EmulateArgs, seed: Seed) -> EmulatorBuilder {
    let mut builder = Emulator::builder(seed).real_signatures().id_seed(args.ids);
    for (name, value) in &args.switch {
        builder = builder.switch(name, value);
    }
    for (name, drawn) in &args.fault {
        builder = match *drawn {
            Drawn::First(count) => builder.fault_first(name, count),
            Drawn::Seeded(seed) => builder.fault_seeded(name, seed),
        };
    }
    for host in &args.allow_host {
        builder = builder.allow_host(host);
    }
    builder
}

fn refused(error: &StartError) -> Fault {
    let (class, advice) = match error {
        StartError::Address(address, error) => {
            return cannot_listen(&format!("can't listen on {address}"), FREE, error);
        }
        StartError::Setting(_) => (Class::Usage, "docs/emulator.md lists switches and faults"),
        StartError::Seed(_) => (
            Class::Input,
            "--deliver-anywhere allows deliveries to other hosts",
        ),
        _ => (Class::Network, FREE),
    };
    Fault::caused_by(class, "the emulator can't start", error).advise(advice)
}

/// Waits for SIGTERM, by which a supervisor ends a program. It counts from this call on, before the
/// future is awaited: a supervisor may send it as soon as the first line is printed.
fn terminated() -> impl Future<Output = ()> {
    #[cfg(unix)]
    let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate());
    async move {
        #[cfg(unix)]
        if let Ok(mut signals) = signals {
            signals.recv().await;
            return;
        }
        std::future::pending().await
    }
}

fn seed(args: &EmulateArgs, own_secret: Option<&str>) -> Result<Seed, Fault> {
    let Some(path) = &args.seed else {
        let secret = own_secret.unwrap_or(RECEIVER.1);
        let sample = Seed::orders().subscription("wh_1", args.to(), secret);
        return sample.map_err(|error| Fault::caused_by(Class::Usage, "no sample", &error));
    };
    let text = String::from_utf8(bytes_of("the seed", path)?);
    let file = path.display();
    let text = text.map_err(|_| Fault::new(Class::Input, format!("{file} is not UTF-8")))?;
    Seed::parse(&text).map_err(|error| {
        Fault::caused_by(Class::Input, &format!("{file} is not a seed"), &error)
            .advise("docs/emulator.md shows the form of a seed")
    })
}

/// Returns the secret of WEBHOOK_SECRET, which a receiver beside the emulator reads too, if it is
/// set.
fn own_secret() -> Result<Option<String>, Fault> {
    let Some(text) = std::env::var_os(SECRET) else {
        return Ok(None);
    };
    let text = text
        .into_string()
        .map_err(|_| Fault::new(Class::Secret, format!("{SECRET} is not UTF-8 text")))?;
    match Secret::new(&text) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(Fault::caused_by(Class::Secret, SECRET, &error)
            .advise(format!("unset {SECRET} for the secret of the sample"))),
    }
}

/// Finds the address, and refuses one that other machines reach where that is not asked for.
async fn address(args: &EmulateArgs) -> Result<SocketAddr, Fault> {
    let message = format!("can't listen on {}", args.addr);
    let unknown = || io::Error::other("it has no address");
    let found = lookup_host(&args.addr).await;
    let first = found.and_then(|mut found| found.next().ok_or_else(unknown));
    let address = first.map_err(|error| cannot_listen(&message, FREE, &error))?;
    if !address.ip().is_loopback() && !args.expose {
        let what = format!("{address} is reached from other machines");
        return Err(Fault::new(Class::Usage, what)
            .advise("--expose allows it, and asks for a token on control API and page"));
    }
    Ok(address)
}

/// Returns the token of the environment, or a new one. The hasher's keys come from the system's
/// random numbers.
fn token() -> String {
    let given = std::env::var(TOKEN).unwrap_or_default();
    let is_sendable = |char: char| char.is_ascii_alphanumeric() || "-_.~".contains(char);
    if given.len() >= 16 && given.chars().all(is_sendable) {
        return given;
    }
    if !given.is_empty() {
        let advice = "give at least 16 letters and digits; a token was made up in its place";
        warn(&format!("{TOKEN} holds no usable token"), advice);
    }
    let part = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", part(), part())
}

/// Keys and secret of the sample, which delivers to this URL, are made up, and known to all. Those
/// of a seed, a state or the environment are not printed.
fn tell(
    emulator: &Emulator,
    token: Option<&str>,
    sample: Option<&str>,
    has_own_secret: bool,
    out: &mut Out,
) -> Result<(), Fault> {
    let url = emulator.url();
    let secret = (!has_own_secret).then_some(RECEIVER.1);
    let mut json =
        serde_json::json!({ "listening": url, "api": emulator.base_url(), "token": token });
    let mut lines = vec![format!("listening on {url}")];
    match token {
        Some(token) => lines.extend([
            format!("page    {url}/?token={token}"),
            format!("token   {token}"),
        ]),
        None => lines.push(format!("page    {url}/")),
    }
    lines.push(format!("api     {}", emulator.base_url()));
    if let Some(receiver) = sample {
        json["keys"] = KEYS.into();
        json["webhooks"] = serde_json::json!({ "url": receiver, "secret": secret });
        let (shown, given) = match secret {
            Some(secret) => (secret, format!("{SECRET}={secret} ")),
            None => ("of WEBHOOK_SECRET", String::new()),
        };
        let options = listening_at(receiver);
        lines.extend([
            format!("keys    {}", KEYS.join(", ")),
            format!("hooks   to {receiver}, with the secret {shown}"),
            format!("next    {given}hookgate listen --page") + &options,
        ]);
    }
    out.say(&lines.join("\n"), &json)?;
    Ok(out.flush()?)
}

/// Returns the options by which `listen` receives at this URL, where they are not its defaults.
fn listening_at(url: &str) -> String {
    let (Ok(given), Ok(default)) = (url.parse::<Uri>(), RECEIVER.0.parse::<Uri>()) else {
        return String::new();
    };
    let mut options = String::new();
    if let Some(address) = given
        .authority()
        .filter(|it| Some(*it) != default.authority())
    {
        options.push_str(&format!(" --addr {address}"));
    }
    if given.path() != default.path() {
        options.push_str(&format!(" --path {}", given.path()));
    }
    options
}

fn restore(emulator: &Emulator, path: &Path) -> Result<(), Fault> {
    let text = fs::read_to_string(path).map_err(|error| unusable(path, "read", &error))?;
    let restored = emulator.restore(&text);
    restored.map_err(|error| unusable(path, "restored", &error))
}

/// Writes a file beside it first, so that a full disk or an interruption leaves the old state.
fn keep(emulator: &Emulator, path: &Path) -> Result<(), Fault> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let beside = path.with_file_name(name);
    let written = write(&beside, &emulator.snapshot()).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        let _ = fs::remove_file(&beside);
        unusable(path, "written", &error)
    })
}

/// The file holds secrets: only its owner may read it. One that is left there, or a link to
/// another, is not written to.
fn write(path: &Path, text: &str) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn unusable(path: &Path, what: &str, error: &dyn std::error::Error) -> Fault {
    let message = format!("{} can't be {what}", path.display());
    Fault::caused_by(Class::Input, &message, error)
        .advise("give a file that you may read and write, or one that does not exist yet")
}
