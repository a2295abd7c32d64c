//! The emulator over HTTP, as the specification's reader uses it. A module a section; docs/emulator.md says which test shows which line.

mod access;
mod authentication;
mod control;
mod data_models;
mod deliveries;
mod envelope;
mod limits;
mod retries;
mod rows;
mod seeds;
mod support;
mod things;
mod values;
mod week;

use support::Service;
