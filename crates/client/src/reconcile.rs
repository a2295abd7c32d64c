//! Finds the rows that changed without a handled event.
