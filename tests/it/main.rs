//! The integration tests: one binary, a module a behaviour. Names are sentences.

mod vectors;
