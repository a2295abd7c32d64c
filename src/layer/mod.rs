//! The tower layer: the walk of a delivery with deadlines, waiting copies and runs that outlive their request.

mod body;
mod catch;
mod dead_letter;
mod drain;
mod hooks;
mod response;
mod run;
mod service;
mod settings;
mod settle;
mod supervise;
mod trace;
mod waiting;

pub use body::{ResponseBody, VerifiedBody};
pub use dead_letter::DeadLetter;
pub use drain::Drained;
pub use hooks::{Answer, DeadLettered, Failed, HookError, Reason, Settled};
pub use response::OwnAnswer;
pub use service::{ResponseFuture, WebhookLayer, WebhookService};

pub(crate) use settings::LayerSettings;
#[cfg(feature = "axum")]
pub(crate) use settle::Misfit;

use crate::receiver::Receiver;

impl Receiver {
    /// A layer that guards a route.
    #[must_use]
    pub fn layer(&self) -> WebhookLayer {
        WebhookLayer::new(self.clone())
    }
}
