//! Over pipes.
