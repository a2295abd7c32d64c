//! The operator's hooks.
//!
//! The sender gets a status and a short message. All details go to the hooks, to `tracing` and into the response's extensions.
//! A hook runs on the thread that answers, so it must not block.

use std::sync::Arc;

use super::reports::{Answer, Failed, Settled};
use super::step::{Observer, Step};
use crate::caught::caught;

pub(crate) type Hook<T> = Arc<dyn Fn(&T) + Send + Sync>;

/// The hooks that are set on the receiver.
#[derive(Default)]
pub(crate) struct Hooks {
    pub(crate) answer: Option<Hook<Answer>>,
    pub(crate) settled: Option<Hook<Settled>>,
    pub(crate) failed: Option<Hook<Failed>>,
}

impl Observer<Step<'_>> for Hooks {
    #[inline]
    fn observe(&self, step: Step<'_>) {
        match step {
            Step::Answered(_, answer) => call(self.answer.as_ref(), answer),
            Step::Settled(settled) => call(self.settled.as_ref(), settled),
            Step::Failed(failed) => call(self.failed.as_ref(), failed),
            _ => {}
        }
    }
}

/// Calls a hook, if it is set.
pub(crate) fn call<T>(hook: Option<&Hook<T>>, report: &T) {
    if let Some(hook) = hook {
        let _ = caught(|| hook(report));
    }
}

impl Hooks {
    pub(super) fn are_set(&self) -> bool {
        self.answer.is_some() || self.settled.is_some() || self.failed.is_some()
    }

    /// Stops the calls of the hooks that were set, once `holds` returns false.
    pub(crate) fn only_if(&mut self, holds: impl Fn() -> bool + Clone + Send + Sync + 'static) {
        fn guarded<T: 'static>(
            hook: &mut Option<Hook<T>>,
            holds: impl Fn() -> bool + Send + Sync + 'static,
        ) {
            *hook = hook.take().map(|hook| -> Hook<T> {
                Arc::new(move |report: &T| {
                    if holds() {
                        hook(report);
                    }
                })
            });
        }
        guarded(&mut self.answer, holds.clone());
        guarded(&mut self.settled, holds.clone());
        guarded(&mut self.failed, holds);
    }
}
