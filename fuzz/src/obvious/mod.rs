//! The second implementation: slow, obvious, and written from the service's specification and the
//! crate's design, not from its code. Plain strings, plain lists, no early exit, nothing shared
//! with the crate but its inputs.

pub mod event;
pub mod headers;
pub mod json;
pub mod mac;
pub mod receiver;
