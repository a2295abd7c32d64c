//! Reads deliveries from common text forms: a raw HTTP request, lines of headers, a curl command.
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
//!
//! let pasted = r"curl https://receiver.example.org/webhooks \
//!   -H 'X-Service-Timestamp: 1763690000' --data-raw $'{}'";
//! let same = read::curl(pasted, at, |_| Err(std::io::ErrorKind::Unsupported.into()))?;
//! assert_eq!((same.target.as_str(), same.body), ("/webhooks", request.body));
//! # Ok::<(), hookgate_testing::read::ReadError>(())
//! ```

mod curl;
mod error;
mod http;
mod shell;

pub use curl::curl;
pub use error::{ReadError, ReadErrorKind};
pub use http::http;
