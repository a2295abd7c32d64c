//! Two processes, 256 racers, one id.

use hookgate_postgres::PostgresStore;

use super::database;
use crate::support::{PostgresServer, migrated, one_run_in_two_processes};

#[test]
fn one_run_of_256_racers_in_two_processes() {
    one_run_in_two_processes(
        "race::one_run_of_256_racers_in_two_processes",
        || {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            let server: PostgresServer = runtime.block_on(migrated(&[]))?;
            let config = server.config();
            Some((server, config))
        },
        async |config| PostgresStore::new(&database(config), "test"),
    );
}
