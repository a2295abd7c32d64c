//! The delivery log: how it is read and imported.

mod folder;
mod imported;
mod read;

pub(crate) use folder::Folder;
use folder::{delivery, delivery_of, ids};
