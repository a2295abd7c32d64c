//! The Workspace Data Service on your machine.
#![forbid(unsafe_code)]
#![allow(dead_code, unused)] // until its rooms are joined

mod answer;
mod api;
mod body;
mod changes;
mod control;
mod deliver;
mod emulator;
mod events;
mod faults;
mod handles;
mod http;
mod hub;
mod ids;
mod live;
mod model;
mod page;
mod path;
mod query;
mod requests;
mod seed;
mod snapshot;
mod switches;
mod time;
mod trigger;

pub use emulator::{Emulator, EmulatorBuilder, StartError};
pub use handles::{Refused, RowsHandle};
pub use seed::{Seed, SeedError};
pub use time::EmulatorClock;
