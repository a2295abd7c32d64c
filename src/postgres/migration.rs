//! The tables, and the steps that make them.

use std::fmt::Write;

use ::tokio_postgres::GenericClient;

use super::failure;
use crate::error::PostgresError;

/// A step of the schema. Each may be run again and then changes nothing, so a tool of your own can run them in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Migration {
    /// The name under which it is recorded in the table `hookgate_migrations`.
    pub name: &'static str,
    /// One or more statements. They name no schema: the tables are made in the first of the `search_path`.
    pub sql: &'static str,
}

/// Makes nothing, and fails where a text that is not ASCII could not be stored. Such a database accepts most events, and refuses
/// the rest for as long as their sender tries. `SQL_ASCII` would accept them, but checks nothing, so that an entry that another
/// program has written there could be unreadable.
const ENCODING: Migration = Migration {
    name: "encoding-1",
    sql: "DO $$ BEGIN
  IF current_setting('server_encoding') <> 'UTF8' THEN
    RAISE EXCEPTION USING ERRCODE = 'character_not_in_repertoire',
      MESSAGE = 'the encoding of this database is ' || current_setting('server_encoding') || ', and hookgate needs UTF8',
      HINT = 'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0';
  END IF;
END $$",
};

/// All steps, in their order. With feature `inbox` also those of its table.
pub const MIGRATIONS: &[Migration] = &[
    ENCODING,
    super::claims::MIGRATION,
    super::effects::MIGRATION,
    #[cfg(feature = "inbox")]
    crate::inbox::POSTGRES_MIGRATIONS[0],
    #[cfg(feature = "inbox")]
    crate::inbox::POSTGRES_MIGRATIONS[1],
    #[cfg(feature = "inbox")]
    crate::inbox::POSTGRES_MIGRATIONS[2],
];

/// The table that records the steps that were run.
const REMEMBERED: &str = "CREATE TABLE IF NOT EXISTS hookgate_migrations (
  name text PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT now()
);";

/// The lock held while the steps are run. Any number that no other program locks is suitable; this one is `hookgate` in ASCII.
const LOCK: i64 = 0x686f_6f6b_6761_7465;

/// Makes the tables that are missing, in the first schema of the connection's `search_path`.
///
/// All steps are one transaction: yours, where `client` is one, and otherwise a separate one. Processes that start at the same
/// time wait for each other. Where no table is missing it needs only the right to read `hookgate_migrations`, and changes
/// nothing.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let (client, connection) = tokio_postgres::connect("host=localhost user=owner", tokio_postgres::NoTls).await?;
/// tokio::spawn(connection);
/// hookgate::postgres::migrate(&client).await?;
/// # Ok(())
/// # }
/// ```
///
/// A client of the crate `deadpool-postgres` is passed as `&**client`.
///
/// # Errors
/// - [`Denied`](crate::PostgresErrorKind::Denied): a table is missing, and the role may not create it.
/// - [`Encoding`](crate::PostgresErrorKind::Encoding): the database is in another encoding than UTF8, also in `SQL_ASCII`.
/// - [`NoSchema`](crate::PostgresErrorKind::NoSchema): no schema of the `search_path` exists.
/// - [`TimedOut`](crate::PostgresErrorKind::TimedOut): another process migrates for longer than the connection's time-outs.
/// - [`Aborted`](crate::PostgresErrorKind::Aborted): `client` is a transaction that had failed before, or one that is stricter
///   than `READ COMMITTED` and met another process that migrates.
/// - [`Failed`](crate::PostgresErrorKind::Failed): any other error; see its source.
pub async fn migrate(client: &impl GenericClient) -> Result<(), PostgresError> {
    if missing(client).await?.is_empty() {
        return Ok(());
    }
    // One message of several statements is one transaction. Each step may be repeated, so none depends on a check made before.
    let mut script = format!("SELECT pg_advisory_xact_lock({LOCK});\n{REMEMBERED}\n");
    for step in MIGRATIONS {
        let Migration { name, sql } = step;
        let _ = writeln!(
            script,
            "{sql};\nINSERT INTO hookgate_migrations (name) VALUES ('{name}') ON CONFLICT DO NOTHING;"
        );
    }
    match client.batch_execute(&script).await {
        // At a stricter default isolation, a transaction that waited for the lock does not see the writes of the lock's previous
        // holder, and is refused. The next transaction sees them.
        Err(error) if failure::is_beaten(&error) && missing(client).await?.is_empty() => Ok(()),
        ran => ran.map_err(failure::direct),
    }
}

/// Returns the names of the steps that have not been run.
async fn missing(client: &impl GenericClient) -> Result<Vec<&'static str>, PostgresError> {
    let known = client
        .query_typed_one("SELECT to_regclass('hookgate_migrations') IS NOT NULL", &[])
        .await
        .map_err(failure::direct)?;
    let mut missing: Vec<_> = MIGRATIONS.iter().map(|step| step.name).collect();
    if known.get::<_, bool>(0) {
        let applied = client
            .query_typed("SELECT name FROM hookgate_migrations", &[])
            .await
            .map_err(failure::direct)?;
        for row in &applied {
            let applied: &str = row.get(0);
            missing.retain(|name| *name != applied);
        }
    }
    Ok(missing)
}
