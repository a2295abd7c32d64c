//! Two processes over one Redis.

use crate::support::{RedisServer, one_run_in_two_processes};

#[test]
fn one_run_of_256_racers_in_two_processes() {
    one_run_in_two_processes(
        "race::one_run_of_256_racers_in_two_processes",
        || {
            let server = RedisServer::start(&[])?;
            let url = server.url();
            Some((server, url))
        },
        async |url| super::patient(url),
    );
}
