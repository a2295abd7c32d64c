//! The delivery log: the recorded fields of a delivery, and how the log is written and read.

mod folder;
mod imported;
mod read;
mod recorded;
mod written;

pub(crate) use folder::Folder;
use folder::{delivery, delivery_of, ids};
