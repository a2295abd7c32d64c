//! The signals that end `hookgate listen`.

#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::fault::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal is gone.
    Terminate,
}

pub(crate) struct Signals {
    #[cfg(unix)]
    interrupt: Stream,
    #[cfg(unix)]
    ends: [Stream; 2],
}

impl Signals {
    /// Handles these signals, so that they end nothing by themselves. Must be called within a runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> Result<Self, Fault> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                let message = "signals can't be waited for";
                Fault::caused_by(crate::fault::Class::Input, message, &error)
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            ends: [
                listen(SignalKind::terminate())?,
                listen(SignalKind::hangup())?,
            ],
        })
    }

    #[cfg(unix)]
    pub(crate) async fn next(&mut self) -> Signal {
        let [terminate, hang_up] = &mut self.ends;
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
            _ = hang_up.recv() => Signal::Terminate,
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Result<Self, Fault> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            Err(_) => std::future::pending().await,
        }
    }
}
