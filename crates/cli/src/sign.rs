//! `hookgate sign`: the headers that the service would send with a body.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bytes::Bytes;

use hookgate::{
    clock::{Clock, SystemClock, UnixSeconds},
    verify::Timestamp,
};

use crate::delivery_input::{bytes_of, time};
use crate::fault::{Class, Fault};
use crate::out::Out;
use crate::secrets::{SchemeArgs, SecretArgs};
use crate::send::named;

/// Print the headers for a body, signed as the service signs.
///
/// A reader of these headers can deliver: keep them out of logs. They are fresh for 300 seconds
/// after the time in their timestamp.
#[derive(clap::Args)]
pub(crate) struct SignArgs {
    /// The body, byte for byte, a line break at its end included. `-` is standard input
    #[arg(long, value_name = "FILE")]
    body: PathBuf,
    /// Sign as of this time: Unix seconds, or ISO 8601 with a zone [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<UnixSeconds>,
    /// Name this subscription in X-Service-Webhook-Id, or in what another scheme has in its place
    #[arg(long, value_name = "ID")]
    subscription: Option<String>,
    /// The event's id, for a scheme that signs it in a header [default: the body's id, or one made
    /// of the body]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    scheme: SchemeArgs,
    #[command(flatten)]
    secret: SecretArgs,
}

pub(crate) fn run(args: &SignArgs, out: &mut Out) -> Result<ExitCode, Fault> {
    let at = args.at.unwrap_or_else(|| SystemClock.now());
    Timestamp::at(at).map_err(|_| {
        Fault::new(
            Class::Usage,
            format!("no timestamp can be written for {at}"),
        )
        .advise("give a time after 1970-01-01T00:00:00Z, in seconds")
    })?;
    let secret = args.secret.first()?;
    let mut signer = args.scheme.signer(secret, args.id.as_deref())?.at(at);
    if let Some(id) = &args.subscription {
        if args.scheme.scheme.subscription_header().is_none() {
            return Err(args
                .scheme
                .has_no("header of a subscription", "--subscription"));
        }
        signer = named(signer, id)?;
    }
    let body = Bytes::from(bytes_of("the body", Path::new(&args.body))?);
    let headers = signer.headers(&body);
    if out.is_json() {
        let value: serde_json::Map<_, _> = headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        out.json_line(&serde_json::json!({ "headers": value }))?;
        return Ok(ExitCode::SUCCESS);
    }
    for (name, value) in headers {
        out.line(&format!("{name}: {value}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
