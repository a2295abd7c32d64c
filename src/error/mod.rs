//! Errors of the workbench, one file per topic.

mod log;
mod path;
mod read;
mod replay;
mod sender;

pub use log::{LogError, LogErrorKind};
pub use path::{PathError, PathErrorKind};
pub use read::{ReadError, ReadErrorKind};
pub use replay::{ReplayError, ReplayErrorKind};
pub use sender::{SenderError, SenderErrorKind};
