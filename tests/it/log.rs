//! The delivery log: what is recorded of a delivery, how it is written and read.

mod folder;
mod imported;
mod read;
mod recorded;
mod written;

pub(crate) use folder::Folder;
use folder::{delivery, delivery_of, ids};
