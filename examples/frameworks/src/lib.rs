//! The common parts of the examples of this folder: an effect for each event, and the signal to
//! stop. The code that a framework needs to receive deliveries is complete in its own example.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hookgate::HandlerError;
use tokio::fs::OpenOptions;
use tokio::io::AsyncWriteExt;

/// The handlers' effect: a line in a file for each order. It fails while the file can't be written,
/// and is as slow as configured.
#[derive(Clone, Debug)]
pub struct Ledger {
    file: Arc<PathBuf>,
    takes: Duration,
}

impl Ledger {
    /// Returns the ledger in the file that `LEDGER` names, or in `ledger.txt`. `LEDGER_MILLIS`
    /// makes it slow.
    pub fn from_env() -> Self {
        let file = env::var_os("LEDGER").unwrap_or_else(|| "ledger.txt".into());
        let takes = env::var("LEDGER_MILLIS").ok();
        let takes = takes.and_then(|millis| millis.parse().ok()).unwrap_or(0);
        Self {
            file: Arc::new(file.into()),
            takes: Duration::from_millis(takes),
        }
    }

    /// Appends a line.
    ///
    /// # Errors
    /// The file can't be written. The reason is for the operator; the sender gets 500, and tries
    /// again.
    pub async fn book(&self, line: String) -> Result<(), HandlerError> {
        tokio::time::sleep(self.takes).await;
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&*self.file)
            .await?;
        let whole = format!("{line}\n");
        file.write_all(whole.as_bytes()).await?;
        // A write that tokio has buffered may still fail, and then the event is not handled.
        Ok(file.flush().await?)
    }
}

/// Returns the address to listen on: `ADDR`, or 127.0.0.1:8787.
pub fn address() -> String {
    env::var("ADDR").unwrap_or_else(|_| "127.0.0.1:8787".into())
}

/// Ends at Ctrl-C or SIGTERM.
pub async fn stop_signal() {
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => signals.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<Option<()>>();
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate => {}
    }
}
