//! Ctrl-C and the other signals: which work they end, and which state they must not leave behind.

use std::future::Future;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::ctrl_c;
#[cfg(unix)]
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

use crate::fault::{Class, Fault, INTERRUPTED};

/// Whether some code of this program waits for Ctrl-C and ends the command itself.
static AWAITED: AtomicBool = AtomicBool::new(false);

/// Runs an async command to its end, or until Ctrl-C. On Ctrl-C the command's future is dropped
/// where it waits, so that its destructors can clean up, and the program ends with 130. The program
/// does not wait for work that the command left on blocking threads.
pub(crate) fn block_on<T>(command: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    block_on_until_done(async { or_interrupted(command).await? })
}

/// The same for a command that handles Ctrl-C itself, with [`or_interrupted`], since it prints a
/// result afterwards.
pub(crate) fn block_on_until_done<T>(
    command: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let runtime = Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(no_runtime)?;
    let ended = runtime.block_on(command);
    runtime.shutdown_background();
    ended
}

/// Waits for the future, or for Ctrl-C.
pub(crate) async fn or_interrupted<F: Future>(future: F) -> Result<F::Output, Fault> {
    AWAITED.store(true, Ordering::SeqCst);
    tokio::select! {
        // The first poll takes Ctrl-C over, before anything else is done.
        biased;
        // Without a handler there is nothing to wait for: Ctrl-C ends the process as it ends any.
        Ok(()) = ctrl_c() => Err(Fault::interrupted()),
        ended = future => Ok(ended),
    }
}

/// Calls a function that must clean up by itself when it is interrupted, such as a prompt that has
/// switched the terminal's echo off. During the call Ctrl-C does not end the process. Afterwards it
/// does again.
pub(crate) fn defer_interrupt<T>(call: impl FnOnce() -> T) -> Result<T, Fault> {
    let awaited_before = AWAITED.swap(true, Ordering::SeqCst);
    let watching = watch();
    let answer = call();
    AWAITED.store(awaited_before, Ordering::SeqCst);
    watching.map(|()| answer)
}

/// Takes Ctrl-C over. The system's default behaviour can't be restored, so this ends the process in
/// its place, where no other code does.
fn watch() -> Result<(), Fault> {
    let runtime = Builder::new_current_thread()
        .enable_io()
        .build()
        .map_err(no_runtime)?;
    let within = runtime.enter();
    #[cfg(unix)]
    let pressed = signal(SignalKind::interrupt());
    #[cfg(windows)]
    let pressed = tokio::signal::windows::ctrl_c();
    drop(within);
    // Without a handler, Ctrl-C ends the process as it ends any.
    if let Ok(mut pressed) = pressed {
        thread::spawn(move || {
            while runtime.block_on(pressed.recv()).is_some() {
                if !AWAITED.load(Ordering::SeqCst) {
                    process::exit(INTERRUPTED.into());
                }
            }
        });
    }
    Ok(())
}

fn no_runtime(error: std::io::Error) -> Fault {
    Fault::caused_by(Class::Input, "no runtime can be started", &error)
}

/// A signal that ends a command which serves.
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
    /// Handles these signals, so that they end nothing by themselves. Must be called within a
    /// runtime.
    #[cfg(unix)]
    pub(crate) fn listen() -> Result<Self, Fault> {
        let listen = |kind| {
            signal(kind).map_err(|error| {
                let message = "signals can't be waited for";
                Fault::caused_by(Class::Input, message, &error)
            })
        };
        AWAITED.store(true, Ordering::SeqCst);
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
        AWAITED.store(true, Ordering::SeqCst);
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
