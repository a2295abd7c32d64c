//! Reads a delivery from text: a raw HTTP request, or lines of headers.
//!
//! ```
//! use hookgate::clock::UnixSeconds;
//! use hookgate_testing::read;
//!
//! let at = UnixSeconds::new(1_763_690_000);
//! let raw = "POST /webhooks HTTP/1.1\r\nX-Service-Timestamp: 1763690000\r\nContent-Length: 2\r\n\r\n{}";
//! let request = read::http(raw, at)?;
//! assert_eq!(request.header("x-service-timestamp").unwrap(), "1763690000");
//! assert_eq!(request.body.as_deref(), Some(b"{}".as_slice()));
//! # Ok::<(), hookgate_testing::read::ReadError>(())
//! ```

mod http;

pub use http::{ReadError, ReadErrorKind, http};
