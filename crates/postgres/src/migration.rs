//! Makes the tables that are missing.

use std::fmt::Write;

use hookgate::dedupe::{StoreError, StoreErrorKind};
use tokio_postgres::GenericClient;

use super::failure;
use super::failure::store_error;
use super::tables::{MIGRATIONS, Migration};

/// The table that records the steps that were run.
const REMEMBERED: &str = "CREATE TABLE IF NOT EXISTS hookgate_migrations (
  name text PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
);";

/// The lock held while the steps are run. Any number that no other program locks is suitable; this
/// one is `hookgate` in ASCII.
const LOCK: i64 = 0x686f_6f6b_6761_7465;

/// Makes the tables that are missing, in the first schema of the connection's `search_path`: runs
/// the steps of [`MIGRATIONS`] that are not recorded there.
///
/// All steps are one transaction: yours, where `client` is one, and otherwise a separate one.
/// Processes that start at the same time wait for each other. Where no table is missing it needs
/// only the right to read `hookgate_migrations`, and changes nothing.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (config, tls) = hookgate_postgres::Tls::for_url("postgres://owner@localhost/orders")?;
/// let (client, connection) = config.connect(tls).await?;
/// tokio::spawn(connection);
/// hookgate_postgres::migrate(&client).await?;
/// # Ok(())
/// # }
/// ```
///
/// A client of the crate `deadpool-postgres` is passed as `&**client`.
///
/// # Errors
/// - [`Denied`](StoreErrorKind::Denied): a table is missing, and the role may not create it.
/// - [`Setting`](StoreErrorKind::Setting): the database is in another encoding than UTF8, also in
///   `SQL_ASCII`.
/// - [`Missing`](StoreErrorKind::Missing): no schema of the `search_path` exists.
/// - [`TimedOut`](StoreErrorKind::TimedOut): another process migrates for longer than the
///   connection's time-outs.
/// - [`Aborted`](StoreErrorKind::Aborted): `client` is a transaction that had failed before, or one
///   that is stricter than `READ COMMITTED` and met another process that migrates.
/// - [`Unavailable`](StoreErrorKind::Unavailable), or another kind: any other error; see its
///   source.
pub async fn migrate(client: &impl GenericClient) -> Result<(), StoreError> {
    let missing_now = missing(client).await?;
    if missing_now.is_empty() {
        return Ok(());
    }
    // One message of several statements is one transaction. Each step may be repeated, so another
    // process may have run it meanwhile.
    let mut script = format!("SELECT pg_advisory_xact_lock({LOCK});\n{REMEMBERED}\n");
    for Migration { name, sql } in missing_now {
        let _ = writeln!(
            script,
            "{sql};\nINSERT INTO hookgate_migrations (name) VALUES ('{name}') ON CONFLICT DO NOTHING;"
        );
    }
    match client.batch_execute(&script).await {
        // At a stricter default isolation, a transaction that waited for the lock does not see the
        // writes of the lock's previous holder, and is refused. The next transaction sees them.
        Err(error) if failure::is_conflict(&error) && missing(client).await?.is_empty() => Ok(()),
        ran => ran.map_err(store_error),
    }
}

/// Returns the steps that have not been run, in their order. A database in another encoding than
/// UTF8 is an error also where all were run: it may have been restored from a dump of one in UTF8.
async fn missing(client: &impl GenericClient) -> Result<Vec<&'static Migration>, StoreError> {
    let known = client
        .query_typed_one(
            "SELECT to_regclass('hookgate_migrations') IS NOT NULL, current_setting('server_encoding')",
            &[],
        )
        .await
        .map_err(store_error)?;
    let encoding: &str = known.get(1);
    if encoding != "UTF8" {
        let source =
            format!("the encoding of this database is {encoding}, and hookgate needs UTF8");
        return Err(
            StoreError::saying(StoreErrorKind::Setting, failure::ENCODING).caused_by(source),
        );
    }
    let mut missing: Vec<_> = MIGRATIONS.iter().collect();
    if known.get::<_, bool>(0) {
        let applied = client
            .query_typed("SELECT name FROM hookgate_migrations", &[])
            .await
            .map_err(store_error)?;
        for row in &applied {
            let applied: &str = row.get(0);
            missing.retain(|step| step.name != applied);
        }
    }
    Ok(missing)
}
