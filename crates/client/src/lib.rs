//! Client of the Workspace Data Service's HTTP API, and reconciliation: finds what the webhooks missed.
#![forbid(unsafe_code)]

mod call;
mod client;
mod error;
#[cfg(feature = "hyper")]
mod hyper;
mod json;
mod key;
mod list;
mod model;
mod names;
mod objects;
mod options;
mod rate;
pub mod reconcile;
mod rows;
mod rust_struct;
mod transport;
mod trigger;

pub use call::{Wait, WaitReason};
pub use client::{Client, ClientBuilder, DataModels};
pub use error::{BatchProgress, Error, ErrorKind, Scope};
pub use key::ApiKey;
pub use list::{List, Page};
pub use model::{DataModel, Icon, Property, PropertyType, RelationConfig, SelectOption};
pub use objects::Objects;
pub use options::Options;
pub use rate::Rate;
pub use rows::{Created, Direction, Row, RowError, Rows};
pub use rust_struct::RustStruct;
pub use transport::Body;
pub use trigger::{Trigger, TriggerAnswer, TriggerCall};
