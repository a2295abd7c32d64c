//! The Workspace Data Service on your machine.
#![forbid(unsafe_code)]
#![allow(dead_code, unused)] // until its rooms are joined

mod deliver;
mod events;
mod faults;
mod ids;
mod live;
mod switches;
mod time;
mod trigger;

pub use time::EmulatorClock;
