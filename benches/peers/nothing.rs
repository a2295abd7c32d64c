//! Nothing: the bench is all.
