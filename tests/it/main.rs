//! The integration tests: one binary, a module a behaviour. Names are sentences.

mod events;
mod vectors;
