//! Client of the Workspace Data Service's HTTP API, and reconciliation: finds what the webhooks missed.
#![forbid(unsafe_code)]

pub mod reconcile;
