//! The emulator over its public API.
