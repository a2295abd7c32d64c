//! The command `hookgate log`.
