//! What spans several stores or crates: each test starts the servers that it needs on free loopback
//! ports, and stops them.
//!
//! Where a server's program is missing, its tests print that and are left out; `scripts/test`
//! installs missing programs, and sets `HOOKGATE_REQUIRE_TOOLS`, with which no test is left out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // a failed expectation must stop the test
#![allow(unreachable_pub, missing_debug_implementations)] // a test has no API
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // The numbers are the tests' own.
#![cfg(unix)]

#[allow(dead_code, unused_imports)] // not every test needs every server
mod support;

mod age;
mod kill;
mod programs;
mod workers;

#[allow(dead_code)] // not every test starts an example
#[path = "../it/process.rs"]
mod process;

mod start {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use crate::support::{PostgresServer, Proxy, RedisServer};

    #[test]
    fn servers_start_answer_and_start_again() {
        if let Some(mut redis) = RedisServer::start(&[]) {
            redis.restart();
            let proxy = Proxy::before(redis.server.address);
            let mut stream = TcpStream::connect(proxy.address).unwrap();
            stream.write_all(b"PING\r\n").unwrap();
            let mut answer = [0; 7];
            stream.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"+PONG\r\n");
        }
        if let Some(mut postgres) = PostgresServer::start(&[]) {
            postgres.restart();
        }
    }
}
