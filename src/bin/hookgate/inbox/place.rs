//! Where the inbox is: a file that is there, or a database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hookgate::inbox::InboxOptions;
use hookgate::{Inbox, StoreError};

use crate::fault::{Class, Fault};

/// A command may wait for longer than a sender does.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
#[group(required = true, multiple = false, id = "inbox")]
pub(crate) struct Place {
    /// The inbox's file, which the receiver has made
    #[arg(long, value_name = "PATH")]
    db: Option<PathBuf>,
    /// The name of the environment variable that holds the URL of the PostgreSQL database (feature `postgres`). Without TLS: for a
    /// database on this machine, behind a tunnel, or on a network that is trusted
    #[arg(long, value_name = "VARIABLE")]
    database_url_env: Option<String>,
    /// The file that holds the URL (feature `postgres`)
    #[arg(long, value_name = "PATH")]
    database_url_file: Option<PathBuf>,
}

impl Place {
    pub(super) fn open(&self) -> Result<Inbox, Fault> {
        match &self.db {
            Some(path) => open_file(path),
            None => open_table(&self.url()?),
        }
    }

    /// Why the inbox did not do as it was asked.
    pub(super) fn fault(&self, error: &StoreError) -> Fault {
        if self.db.is_some() {
            return Fault::caused_by(Class::Input, "the inbox did not answer", error)
                .advise("is another process writing for long, or the disk full? What was asked may be done or not: ask again");
        }
        Fault::caused_by(Class::Network, "the database did not answer", error).advise(
            "is it up, and has it the table of hookgate's migration? What was asked may be done or not: ask again",
        )
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
        // One of the three is there, as clap has seen to.
        let path = self.database_url_file.clone().unwrap_or_default();
        let read = std::fs::read_to_string(&path).map_err(|error| {
            let message = format!("{} can't be read", path.display());
            Fault::caused_by(Class::Input, &message, &error).advise(advice)
        })?;
        Ok(read.trim().to_owned())
    }
}

fn open_file(path: &Path) -> Result<Inbox, Fault> {
    let opening = InboxOptions::default().existing().patience(PATIENCE);
    opening.open(path).map_err(|error| {
        Fault::caused_by(Class::Input, "the inbox can't be opened", &error)
            .advise("name the file that the receiver opens: this command makes none")
    })
}

#[cfg(feature = "postgres")]
fn open_table(url: &str) -> Result<Inbox, Fault> {
    // The error would repeat a part of the URL, which holds a password.
    let config = url.parse::<tokio_postgres::Config>().map_err(|_| {
        Fault::new(
            Class::Usage,
            "what stands there is no URL of a PostgreSQL database",
        )
        .advise("write postgres://user@host/database, special characters of a password as %XX")
    })?;
    let postgres = hookgate::postgres::Postgres::new(config, tokio_postgres::NoTls);
    Ok(Inbox::on_postgres(&postgres))
}

#[cfg(not(feature = "postgres"))]
fn open_table(_: &str) -> Result<Inbox, Fault> {
    let message = "this hookgate was built without the feature `postgres`";
    Err(Fault::new(Class::Usage, message)
        .advise("install it with it: cargo install hookgate --features cli,postgres"))
}
