//! The delivery log: how it is read and imported.

#[allow(dead_code)] // other packages use the rest
mod folder;
mod imported;
mod read;

use folder::{delivery, delivery_of, ids};
