//! The signals that end `hookgate listen`.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal is gone.
    Terminate,
}

#[cfg(unix)]
pub(crate) use unix::Signals;

#[cfg(unix)]
mod unix {
    use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

    use crate::fault::{Class, Fault};
    use crate::listen::signals::Signal;

    pub(crate) struct Signals {
        interrupt: Stream,
        terminate: Stream,
        hang_up: Stream,
    }

    impl Signals {
        /// Handles these signals, so that they end nothing by themselves. Must be called within a
        /// runtime.
        pub(crate) fn listen() -> Result<Self, Fault> {
            let listen = |kind| {
                signal(kind).map_err(|error| {
                    Fault::caused_by(Class::Input, "signals can't be waited for", &error)
                })
            };
            Ok(Self {
                interrupt: listen(SignalKind::interrupt())?,
                terminate: listen(SignalKind::terminate())?,
                hang_up: listen(SignalKind::hangup())?,
            })
        }

        pub(crate) async fn next(&mut self) -> Signal {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.hang_up.recv() => Signal::Terminate,
            }
        }
    }
}

#[cfg(not(unix))]
pub(crate) use other::Signals;

#[cfg(not(unix))]
mod other {
    use crate::fault::Fault;
    use crate::listen::signals::Signal;

    pub(crate) struct Signals;

    impl Signals {
        pub(crate) fn listen() -> Result<Self, Fault> {
            Ok(Self)
        }

        pub(crate) async fn next(&mut self) -> Signal {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Signal::Interrupt,
                Err(_) => std::future::pending().await,
            }
        }
    }
}
