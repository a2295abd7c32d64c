//! The code of docs/operations.md and docs/tracing.md, compiled: it needs an exporter and
//! OpenTelemetry, which the library's own tests do without.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../../../docs/operations.md")]
struct Operations;

#[cfg(doctest)]
#[doc = include_str!("../../../docs/tracing.md")]
struct Tracing;
