//! Signals of the system to a process: end, stop, continue.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, or the terminal is gone.
    Terminate,
    /// Ctrl-Z.
    Suspend,
    /// It continues after it was stopped.
    Continue,
}

#[cfg(unix)]
pub(crate) use unix::{Signals, ask_to_stop, stop};

#[cfg(unix)]
mod unix {
    use rustix::process::{Signal as Number, getpid, kill_current_process_group, kill_process};
    use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

    use crate::fault::{Class, Fault};
    use crate::listen::signals::Signal;

    pub(crate) struct Signals {
        interrupt: Stream,
        terminate: Stream,
        hang_up: Stream,
        suspend: Stream,
        go_on: Stream,
    }

    impl Signals {
        /// Handles these signals, so that they end nothing by themselves. Must be called within a runtime.
        pub(crate) fn listen() -> Result<Self, Fault> {
            let listen = |number: Number| {
                signal(SignalKind::from_raw(number.as_raw())).map_err(|error| {
                    Fault::caused_by(Class::Input, "signals can't be waited for", &error)
                })
            };
            Ok(Self {
                interrupt: listen(Number::INT)?,
                terminate: listen(Number::TERM)?,
                hang_up: listen(Number::HUP)?,
                suspend: listen(Number::TSTP)?,
                go_on: listen(Number::CONT)?,
            })
        }

        pub(crate) async fn next(&mut self) -> Signal {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.hang_up.recv() => Signal::Terminate,
                _ = self.suspend.recv() => Signal::Suspend,
                _ = self.go_on.recv() => Signal::Continue,
            }
        }
    }

    /// Stops the whole process group, as Ctrl-Z does where the terminal handles it.
    pub(crate) fn ask_to_stop() {
        let _ = kill_current_process_group(Number::TSTP);
    }

    /// Stops this process; returns once it continues.
    pub(crate) fn stop() {
        let _ = kill_process(getpid(), Number::STOP);
    }
}

#[cfg(not(unix))]
pub(crate) use other::{Signals, ask_to_stop, stop};

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

    pub(crate) fn ask_to_stop() {}

    pub(crate) fn stop() {}
}
