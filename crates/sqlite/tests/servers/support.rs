//! Children, folders and the clock: shared with the tests of the workspace.

#[path = "../../../../tests/servers/support/child.rs"]
mod child;
#[path = "../../../../tests/servers/support/expect.rs"]
mod expect;
#[path = "../../../../tests/servers/support/folder.rs"]
mod folder;
#[path = "../../../../tests/servers/support/race.rs"]
mod race;
#[path = "../../../../tests/servers/support/row.rs"]
mod row;
#[path = "../../../../tests/servers/support/server.rs"]
mod server;
#[path = "../../../../tests/servers/support/skew.rs"]
mod skew;

pub use child::{Child, given};
pub(crate) use expect::needed;
pub use expect::{says, until};
pub use folder::Folder;
pub use race::one_run_in_two_processes;
pub use row::{ExpectedOrder, in_its_lives, page_created, record, told, undated, updated};
pub use server::program;
pub use skew::Skew;
