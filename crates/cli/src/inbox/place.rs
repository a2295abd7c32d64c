//! The place of the inbox: an existing file, or a database.

use std::path::{Path, PathBuf};

use hookgate::dedupe::{StoreError, StoreErrorKind};
use hookgate_inbox::Inbox;

use crate::fault::{Class, Fault};
use crate::interrupt;
#[cfg(not(all(feature = "postgres", feature = "sqlite")))]
use crate::left_out::left_out;

#[derive(clap::Args)]
#[group(skip)]
#[command(group(clap::ArgGroup::new("inbox").required(true)))]
pub(crate) struct InboxArg {
    /// The inbox's file, which the receiver has made (feature `sqlite`)
    #[arg(long, value_name = "PATH", group = "inbox", conflicts_with = "name")]
    db: Option<PathBuf>,
    /// The name of the environment variable that holds the URL of the PostgreSQL database (feature
    /// `postgres`).
    ///
    /// sslmode=verify-full or require in it asks for TLS, and either verifies the certificate.
    /// sslrootcert=FILE names the certificates of your provider's authority; without it, those that
    /// the system trusts count.
    #[arg(long, value_name = "VARIABLE", group = "inbox")]
    database_url_env: Option<String>,
    /// The file that holds the URL (feature `postgres`)
    #[arg(long, value_name = "PATH", group = "inbox")]
    database_url_file: Option<PathBuf>,
    /// The inbox's name in the database, as the receiver gives it. Not needed where one name alone
    /// has entries there
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

impl InboxArg {
    pub(super) fn is_file(&self) -> bool {
        self.db.is_some()
    }

    pub(super) async fn open(&self) -> Result<Inbox, Fault> {
        match &self.db {
            Some(path) => open_file(path),
            None => open_table(&self.url()?, self.name.as_deref()).await,
        }
    }

    /// Opens the inbox, makes the call, and closes it. Ctrl-C ends the wait.
    pub(super) fn call<T>(
        &self,
        call: impl AsyncFnOnce(&Inbox) -> Result<T, StoreError>,
    ) -> Result<T, Fault> {
        interrupt::block_on(async {
            let inbox = self.open().await?;
            let called = call(&inbox).await.map_err(|error| self.fault(&error))?;
            inbox.close().await;
            Ok(called)
        })
    }

    /// The error for a failed call of the inbox.
    pub(super) fn fault(&self, error: &StoreError) -> Fault {
        if self.db.is_none() {
            return table_fault(error);
        }
        let again = again(error.changed());
        if error.kind() == StoreErrorKind::TimedOut {
            // The library's own advice names a setting of its callers.
            let changed = match error.changed() {
                0 => String::new(),
                changed => format!("; entries changed before that: {changed}"),
            };
            let message =
                format!("another process has kept the inbox's file in use for too long{changed}");
            return Fault::new(Class::Input, message).advise(format!(
                "it reads or writes for a long time, such as a backup or an open sqlite3: find it with lsof or fuser, and end it. They name the receiver too, which stays. {again}"
            ));
        }
        let advice = match error.kind() {
            StoreErrorKind::Full => {
                "make room on its disk, or raise the limit of its file; then run the command again"
                    .to_owned()
            }
            _ => format!(
                "check whether the receiver still uses this file, and whether its disk works. {again}"
            ),
        };
        Fault::caused_by(Class::Input, "the inbox did not answer", error).advise(advice)
    }

    fn url(&self) -> Result<String, Fault> {
        let advice = "put it there, such as postgres://user@localhost/orders";
        if let Some(name) = &self.database_url_env {
            let found = std::env::var(name).ok().filter(|url| !url.is_empty());
            return found.ok_or_else(|| {
                let message = format!("the variable {name} holds no URL");
                Fault::new(Class::Usage, message).advise(advice)
            });
        }
        // Clap has checked that one of the three is given.
        let path = self.database_url_file.clone().unwrap_or_default();
        let read = std::fs::read_to_string(&path).map_err(|error| {
            let message = format!("{} can't be read", path.display());
            Fault::caused_by(Class::Input, &message, &error).advise(advice)
        })?;
        Ok(read.trim().to_owned())
    }
}

/// Where entries were changed, the error tells their number.
fn again(changed: u64) -> &'static str {
    match changed {
        0 => "Run the command again: it is unknown whether it had an effect",
        _ => "Run the command again",
    }
}

#[cfg(feature = "sqlite")]
fn open_file(path: &Path) -> Result<Inbox, Fault> {
    /// A command may wait for longer than a sender does.
    const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
    const ADVICE: &str = "give the path that the receiver opens, and run this as the receiver's user; this command creates no inbox";
    let opening = hookgate_sqlite::InboxOptions::default()
        .existing()
        .busy_timeout(BUSY_TIMEOUT);
    opening.open(path).map_err(|error| {
        const MESSAGE: &str = "the inbox can't be opened";
        let fault = match error.kind() {
            // The source of this error would repeat the same message.
            StoreErrorKind::Missing | StoreErrorKind::Denied | StoreErrorKind::NotAStore => {
                Fault::new(Class::Input, format!("{MESSAGE}: {error}"))
            }
            _ => Fault::caused_by(Class::Input, MESSAGE, &error),
        };
        fault.advise(match error.kind() {
            StoreErrorKind::Newer => "run the hookgate of the version that the receiver is built with: cargo install hookgate --version …",
            StoreErrorKind::TimedOut => "run the command again; if it fails again, find the process that holds the file, with lsof or fuser",
            _ => ADVICE,
        })
    })
}

#[cfg(feature = "postgres")]
async fn open_table(url: &str, name: Option<&str>) -> Result<Inbox, Fault> {
    let postgres = hookgate_postgres::Postgres::open(url).map_err(|error| {
        Fault::caused_by(Class::Usage, "the database can't be used", &error)
            .advise("correct the URL in the variable or the file")
    })?;
    // Whether there is a pooler is not known. Without one this costs little.
    let postgres = postgres.behind_pooler();
    let name = match name {
        Some(name) => name.to_owned(),
        None => only_name(&postgres).await?,
    };
    postgres
        .inbox(&name)
        .map_err(|error| Fault::new(Class::Usage, error.to_string()))
}

/// The name of the only inbox in the table. Where no inbox has entries, there is no other one to
/// mistake it for.
#[cfg(feature = "postgres")]
async fn only_name(postgres: &hookgate_postgres::Postgres) -> Result<String, Fault> {
    let names = postgres.inbox_names().await;
    let mut names = names.map_err(|error| table_fault(&error))?;
    if names.len() > 1 {
        let names = names.join(", ");
        let message = format!("the database holds inboxes of several names: {names}");
        return Err(Fault::new(Class::Usage, message).advise("say which one is meant with --name"));
    }
    Ok(names.pop().unwrap_or_else(|| "default".to_owned()))
}

/// A server that is down, one that refuses the login, and one without the table need different
/// advice.
#[cfg(feature = "postgres")]
fn table_fault(error: &StoreError) -> Fault {
    use std::error::Error as _;

    let server = error.source();
    let server = server.and_then(|server| server.downcast_ref::<tokio_postgres::Error>());
    // Where TLS is the reason, the library's message has the next step; elsewhere it says less than
    // the server's.
    let says_more =
        error.kind() == StoreErrorKind::Unavailable && error.to_string() != "PostgreSQL failed";
    match (error.kind(), server) {
        (StoreErrorKind::Missing | StoreErrorKind::Denied, _) => {
            Fault::caused_by(Class::Input, "there is no inbox that can be used", error).advise(
                "is it the URL of the receiver's database, and of a role that may use its tables?",
            )
        }
        (_, Some(server)) if server.code().is_none() => {
            let reason: &dyn std::error::Error = if says_more { error } else { server };
            Fault::caused_by(Class::Network, "the database can't be reached", reason).advise(
                format!(
                    "is it running, and is the URL right? {}",
                    again(error.changed())
                ),
            )
        }
        (_, Some(server)) => {
            let reason: &dyn std::error::Error = if says_more { error } else { server };
            Fault::caused_by(Class::Input, "the database refused", reason).advise(
                "correct the user, the password, the name of the database or the sslmode in the URL. Then run the command again",
            )
        }
        _ => {
            Fault::caused_by(Class::Network, "the database did not answer", error).advise(format!(
                "is it running, and not overloaded? {}",
                again(error.changed())
            ))
        }
    }
}

#[cfg(not(feature = "sqlite"))]
fn open_file(_: &Path) -> Result<Inbox, Fault> {
    Err(left_out("an inbox in a file", "sqlite"))
}

#[cfg(not(feature = "postgres"))]
async fn open_table(_: &str, _: Option<&str>) -> Result<Inbox, Fault> {
    Err(left_out("an inbox on PostgreSQL", "postgres"))
}

#[cfg(not(feature = "postgres"))]
fn table_fault(error: &StoreError) -> Fault {
    Fault::caused_by(Class::Network, "the database did not answer", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    // fault H5: a reader of an inbox's file keeps an erasure from overwriting deleted bytes, and the advice blames a writer and names a setting of the library
    #[test]
    fn a_file_in_use_is_reported_alike_for_a_reader_and_a_writer() {
        let place = InboxArg {
            db: Some("inbox.db".into()),
            database_url_env: None,
            database_url_file: None,
            name: None,
        };
        let fault = place.fault(&StoreError::new(StoreErrorKind::TimedOut));
        let message = "another process has kept the inbox's file in use for too long";
        assert_eq!(fault.message(), message);
        let advice = fault.advice().unwrap_or_default();
        assert!(advice.starts_with("it reads or writes for a long time, such as a backup"));
    }

    // fault Q36: `inbox erase`, or another operator's call, fails midway and does not tell how much is done, or tells the number and calls it unknown
    #[test]
    fn an_effect_whose_number_is_known_is_not_called_unknown() {
        assert!(again(0).contains("unknown whether it had an effect"));
        assert_eq!(again(3), "Run the command again");
    }
}
