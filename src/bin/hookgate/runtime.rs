//! One thread, until the work is done or somebody interrupts it.

use std::future::Future;
use std::process::ExitCode;

use crate::fault::{Class, Fault};

/// The exit code of what was interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// Runs a command's work. On Ctrl-C it is dropped and the exit code says so.
pub(crate) fn block_on(
    work: impl Future<Output = Result<ExitCode, Fault>>,
) -> Result<ExitCode, Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Fault::caused_by(Class::Network, "no runtime can be started", &error))?;
    let ended = runtime.block_on(async {
        tokio::select! {
            ended = work => ended,
            () = interrupted() => Ok(ExitCode::from(INTERRUPTED)),
        }
    });
    // A name that is still being looked up would hold the program.
    runtime.shutdown_background();
    ended
}

/// Until Ctrl-C. For ever where the system tells nobody.
pub(crate) async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
