//! The URL of a database, with the parameters about TLS that the crate tokio-postgres does not
//! know.

use std::error::Error as _;
use std::net::IpAddr;
use std::path::PathBuf;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio_postgres::config::{Config, Host, SslMode};

/// The certificates to trust.
#[cfg_attr(not(feature = "tls"), allow(dead_code))]
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Authority {
    System,
    /// One or more certificates in PEM.
    Pem(Vec<u8>),
}

const NO_URL: &str = "this can't be used as the URL of a PostgreSQL: write postgres://user@host/database, special characters of a password as %XX";

const NO_MODE: &str = "the URL leads to another machine, and does not say whether with TLS: add sslmode=verify-full and enable the feature tls of hookgate-postgres, or add sslmode=disable for a network that you trust";

const POOLER: &str = "the URL's parameter pgbouncer is of another client: leave it out, and call Postgres::behind_pooler";

/// Parameters of other clients, which the crate tokio-postgres refuses. No other name is repeated
/// in an error, since a part of a password may stand in its place.
const OF_OTHERS: [&str; 43] = [
    "binary_parameters",
    "client_encoding",
    "connection_limit",
    "currentSchema",
    "default_query_exec_mode",
    "fallback_application_name",
    "gssdelegation",
    "gssencmode",
    "gsslib",
    "keepalives_count",
    "krbsrvname",
    "max_protocol_version",
    "min_protocol_version",
    "passfile",
    "pgbouncer",
    "pool_max_conns",
    "pool_mode",
    "pool_timeout",
    "prepareThreshold",
    "replication",
    "require_auth",
    "requirepeer",
    "requiressl",
    "schema",
    "search_path",
    "service",
    "servicefile",
    "socket_timeout",
    "ssl",
    "ssl_max_protocol_version",
    "ssl_min_protocol_version",
    "sslaccept",
    "sslcertmode",
    "sslcompression",
    "sslcrl",
    "sslcrldir",
    "sslidentity",
    "sslkeylogfile",
    "sslpassword",
    "sslsni",
    "statement-cache-capacity",
    "statement_timeout",
    "timezone",
];

/// The refusal of a URL that can't be read. The error itself may repeat a part of the URL.
fn unread(error: &tokio_postgres::Error) -> StoreError {
    let reason = error.source().map(ToString::to_string).unwrap_or_default();
    let Some(unknown) = reason.strip_prefix("unknown option `") else {
        return refused(NO_URL);
    };
    let name = unknown.trim_end_matches('`');
    match OF_OTHERS.iter().find(|known| **known == name) {
        Some(&"pgbouncer") => refused(POOLER),
        Some(name) => StoreError::saying(
            StoreErrorKind::Setting,
            format!("the URL's parameter {name} is not supported: leave it out"),
        ),
        None => refused(
            "a parameter of the URL is not known, or a special character of its password is not written as %XX: leave the parameter out",
        ),
    }
}

/// Returns the configuration. Its `sslmode` is whether TLS is used; where it is used, certificates
/// are verified.
pub(super) fn read(url: &str) -> Result<(Config, Authority), StoreError> {
    let (rest, parameters) = TlsParameters::taken_from(url)?;
    let mut config: Config = rest.parse().map_err(|error| unread(&error))?;
    // A mode that stands beside quotes or spaces was read by the other crate, whose default is
    // `Prefer`.
    let other = Some(config.get_ssl_mode()).filter(|mode| *mode != SslMode::Prefer);
    // A named authority is only of use where the certificate is verified.
    let mode = parameters
        .mode
        .or(other)
        .or_else(|| parameters.authority.as_ref().map(|_| SslMode::Require));
    let authority = match parameters.authority {
        Some(path) if path.as_os_str() != "system" => {
            let pem = std::fs::read(&path).map_err(|error| {
                refused("the file of sslrootcert can't be read: give its path to the certificates to trust, in PEM")
                    .caused_by(format!("{}: {error}", path.display()))
            })?;
            Authority::Pem(pem)
        }
        _ => Authority::System,
    };
    config.ssl_mode(match mode {
        _ if on_sockets(&config) => SslMode::Disable,
        Some(SslMode::Prefer) | None if on_this_machine(&config) => SslMode::Disable,
        // TLS would be offered with the feature: the same URL must not mean a connection without
        // TLS where the feature is missing.
        Some(SslMode::Prefer) | None if cfg!(not(feature = "tls")) => {
            return Err(refused(NO_MODE));
        }
        mode => mode.unwrap_or(SslMode::Prefer),
    });
    Ok((config, authority))
}

/// The parameters of a URL about TLS.
#[derive(Default)]
struct TlsParameters {
    mode: Option<SslMode>,
    authority: Option<PathBuf>,
}

impl TlsParameters {
    /// Returns the parameters, and the URL without them.
    fn taken_from(url: &str) -> Result<(String, Self), StoreError> {
        let mut parameters = Self::default();
        let is_url = ["postgres://", "postgresql://"]
            .iter()
            .any(|start| url.starts_with(start));
        let (start, words, joint): (&str, Vec<_>, _) = if is_url {
            // A password may contain a question mark.
            let host = url.find('@').unwrap_or_default();
            let query = url[host..].find('?').map_or(url.len(), |at| host + at + 1);
            (&url[..query], url[query..].split('&').collect(), "&")
        } else if !url.contains('\'') {
            ("", url.split_whitespace().collect(), " ")
        } else if url.contains("sslmode=verify") || url.contains("sslrootcert") {
            // A quoted value may contain any text, so that words can't be told apart.
            return Err(refused(NO_URL));
        } else {
            return Ok((url.to_owned(), parameters));
        };
        let mut others = Vec::new();
        for word in words {
            if !parameters.take(word)? {
                others.push(word);
            }
        }
        Ok((format!("{start}{}", others.join(joint)), parameters))
    }

    /// Takes one word, where it is about TLS. Returns whether it is.
    fn take(&mut self, word: &str) -> Result<bool, StoreError> {
        match word.split_once('=') {
            Some(("sslmode", mode)) => {
                self.mode = Some(match mode {
                    "disable" => SslMode::Disable,
                    "allow" | "prefer" => SslMode::Prefer,
                    "require" | "verify-ca" | "verify-full" => SslMode::Require,
                    _ => {
                        return Err(refused(
                            "the URL's sslmode is unknown: use verify-full, or disable for no TLS",
                        ));
                    }
                });
            }
            Some(("sslrootcert", file)) => {
                self.authority = Some(decoded(file).ok_or_else(|| refused(NO_URL))?.into());
            }
            Some(("sslcert" | "sslkey", _)) => {
                return Err(refused(
                    "the URL names a certificate of the client, which is not supported: use Postgres::new with a connector of your own",
                ));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Undoes the `%XX` of a URL.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let (number, rest) = (part.get(..2)?, part.get(2..)?);
        bytes.push(u8::from_str_radix(number, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn on_sockets(config: &Config) -> bool {
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    // An address goes before the host.
    let is_named = !config.get_hosts().is_empty() && config.get_hostaddrs().is_empty();
    is_named && config.get_hosts().iter().all(is_socket)
}

/// No packet leaves the machine, and a certificate for such a name is rare.
fn on_this_machine(config: &Config) -> bool {
    let is_here = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<IpAddr>();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(is_here)
}

pub(super) fn refused(message: &'static str) -> StoreError {
    StoreError::saying(StoreErrorKind::Setting, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> SslMode {
        read(url).unwrap().0.get_ssl_mode()
    }

    // fault P1: a server that is managed by a provider can't be used for want of TLS; a Redis whose certificate is refused is a time-out without a reason
    // fault T4: the feature for TLS changes the meaning of a URL: without `sslmode`, another machine is offered TLS or not
    #[test]
    fn the_url_decides_about_tls() {
        for start in [
            "postgres://app:a?b@db.example/app?",
            "host=db.example user=app ",
        ] {
            for word in ["require", "verify-ca", "verify-full"] {
                assert_eq!(
                    mode(&format!("{start}sslmode={word}")),
                    SslMode::Require,
                    "{word}"
                );
            }
            assert_eq!(mode(&format!("{start}sslmode=disable")), SslMode::Disable);
            let unknown = read(&format!("{start}sslmode=on")).unwrap_err();
            assert!(unknown.to_string().contains("sslmode"), "{unknown}");
        }
        for url in [
            "postgres://app@db.example/app",
            "postgresql://app@db.example?sslmode=prefer",
            "postgres://db.example?sslmode=allow",
            "host=db.example user=app",
            "postgres://app@localhost,db.example/app",
        ] {
            if cfg!(feature = "tls") {
                assert_eq!(mode(url), SslMode::Prefer, "{url}");
            } else {
                let error = read(url).unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Setting, "{url}");
                assert!(error.to_string().contains("sslmode=disable"), "{error}");
            }
        }
        for url in [
            "postgres://app@localhost/app",
            "postgres://app@127.0.0.1/app?sslmode=prefer",
            "postgres://app@[::1]/app",
            "host=db.example hostaddr=127.0.0.1 user=app",
            "postgres://app@%2Fvar%2Frun%2Fpostgresql/app?sslmode=verify-full",
            "host=/var/run/postgresql sslmode=require",
        ] {
            assert_eq!(mode(url), SslMode::Disable, "{url}");
        }
        assert_eq!(
            mode("postgres://app@localhost/app?sslmode=require"),
            SslMode::Require
        );
    }

    #[test]
    fn the_rest_of_the_url_stays_and_the_authority_is_read() {
        let pem = std::env::temp_dir().join(format!("hookgate url {}", std::process::id()));
        std::fs::write(&pem, "made up").unwrap();
        let path = pem.to_str().unwrap().replace(' ', "%20");
        let url = format!(
            "postgres://app:pass%20word@db.example:5433/app?connect_timeout=2&sslrootcert={path}&sslmode=verify-full&application_name=orders"
        );
        let (config, authority) = read(&url).unwrap();
        assert_eq!(authority, Authority::Pem(b"made up".to_vec()));
        assert_eq!(config.get_password(), Some(b"pass word".as_slice()));
        assert_eq!(config.get_application_name(), Some("orders"));
        assert_eq!(config.get_ports(), [5433]);
        // As for other clients, an authority is named to be checked.
        let url = format!("postgres://app@db.example/app?sslrootcert={path}");
        let (config, _) = read(&url).unwrap();
        assert_eq!(config.get_ssl_mode(), SslMode::Require);
        std::fs::remove_file(&pem).unwrap();
        let error = read(&url).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Setting);
        assert!(
            error.to_string().contains("sslrootcert can't be read"),
            "{error}"
        );
        let (_, authority) = read("postgres://db.example/?sslrootcert=system").unwrap();
        assert_eq!(authority, Authority::System);
    }

    #[test]
    fn a_mode_is_read_beside_quotes_and_spaces() {
        for url in [
            "host=db.example user=app password='x y' sslmode=require",
            "host=db.example sslmode='require'",
            "host=db.example sslmode = require",
            "host=db.example sslmode =require",
            "host=localhost sslmode = require",
            "host=/var/run/postgresql hostaddr=192.0.2.5 sslmode=verify-full",
        ] {
            assert_eq!(mode(url), SslMode::Require, "{url}");
        }
        for url in [
            "host=db.example sslmode = verify-full",
            "host=db.example sslmode='verify-full'",
            "host=db.example password='x y' sslmode = verify-ca",
        ] {
            assert!(read(url).is_err(), "{url}");
        }
    }

    // fault P7: a URL with a parameter of another client is refused with advice about its password
    #[test]
    fn a_parameter_of_another_client_is_named_without_its_value() {
        for start in ["postgres://app:hunter2@db.example/app?", "host=db.example "] {
            for name in OF_OTHERS {
                let error = read(&format!("{start}{name}=hunter2")).unwrap_err();
                assert_eq!(error.kind(), StoreErrorKind::Setting, "{name}");
                assert!(error.to_string().contains(name), "{name}: {error}");
                assert!(!error.to_string().contains("a password"), "{name}: {error}");
                assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
            }
        }
        let error = read("postgres://app@db.example:6432/app?pgbouncer=true").unwrap_err();
        assert!(
            error.to_string().contains("Postgres::behind_pooler"),
            "{error}"
        );
        // A name that is not known may be a part of a password, so the error does not show it.
        let error = read("postgres://app@db.example/app?made_up=1").unwrap_err();
        assert!(error.to_string().contains("a parameter"), "{error}");
        assert!(!format!("{error:?}").contains("made_up"), "{error:?}");
    }

    #[test]
    fn a_url_that_is_refused_is_not_shown() {
        for url in [
            "postgres://app:hunter2@db.example/app?hunter2=1",
            "postgres://app:hunter2@db.example:hunter2/app",
            "postgres://app:hunter2@db.example/app?sslmode=hunter2",
            "postgres://app:hunter2@db.example/app?sslcert=hunter2&sslkey=k",
            "postgres://app:hunter2@db.example/app?sslrootcert=%zz",
            "host=db password='hunter2 sslmode=verify-full'",
            "hunter2",
        ] {
            let error = read(url).unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Setting, "{url}");
            assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
        }
    }
}
