//! Has nothing to offer: the tests are in `main.rs`.
