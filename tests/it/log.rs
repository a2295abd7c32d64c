//! The delivery log: what is recorded of a delivery, how it is written and read.

mod folder;
mod imported;
mod read;
mod recorded;
mod written;

use folder::{Folder, delivery, delivery_of, ids};
