//! Has nothing to offer: the tests stand beside this file. Its documentation tests compile the
//! pages whose code needs several packages.
#![forbid(unsafe_code)]

#[cfg(all(doctest, feature = "pages"))]
#[doc = include_str!("../docs/names.md")]
struct Names;

#[cfg(all(doctest, feature = "pages"))]
#[doc = include_str!("../usage-rules.md")]
struct UsageRules;
