//! Claims that several processes share, on Redis or Valkey.
