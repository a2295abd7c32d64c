//! `hookgate log`: the command that looks into a delivery log.

mod command;

pub(crate) use command::received;

#[allow(dead_code)] // shared with the tests of the library
#[path = "../../../testing/tests/it/log/folder.rs"]
mod folder;

use folder::{delivery, delivery_of};
