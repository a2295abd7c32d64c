//! Has nothing to offer: the tests stand beside this file.
#![forbid(unsafe_code)]
