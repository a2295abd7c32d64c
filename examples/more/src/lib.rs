//! The code of docs/operations.md, compiled: it needs the exporter, which the library's own tests do without.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/operations.md")]
struct Operations;
