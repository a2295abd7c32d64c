//! The delivery log: how it is read.

#[allow(dead_code)] // other packages use the rest
mod folder;
mod read;

use folder::{delivery, delivery_of, ids};
