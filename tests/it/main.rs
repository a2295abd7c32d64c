//! The integration tests: one binary, a module a behaviour. Names are sentences.

mod stores;
mod vectors;
