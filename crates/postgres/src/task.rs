//! Work in the background, one task at a time.

use std::future::Future;
use std::sync::{Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A task that runs from when it is first needed until it ends or this is dropped. It is started
/// again where it is needed again, also after it has panicked, or after the runtime that it began
/// on has ended.
#[derive(Debug, Default)]
pub(crate) struct Task(Mutex<Option<JoinHandle<()>>>);

impl Task {
    /// Starts the task, where it does not run and there is a runtime.
    pub(crate) fn run<F>(&self, work: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut task = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Handle::try_current()
                .ok()
                .map(|handle| handle.spawn(work()));
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        let task = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(task) = task {
            task.abort();
        }
    }
}
