//! The control API under `/_emulator`: one table of endpoints, which the page and the docs show
//! too.

mod clock;
mod deliveries;
mod faults;
mod keys;
mod rows;
mod subscriptions;
mod table;
mod triggers;
mod workspace;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;

pub(crate) use table::CONTROLS;

use crate::answer::{Answer, ApiError};
use crate::api::matched;
use crate::hub::{Hub, Shared};
use crate::query::{Query, decoded};

/// A request to one control.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) hub: Shared,
    pub(crate) ids: Vec<String>,
    pub(crate) query: Query,
    pub(crate) body: Bytes,
}

pub(crate) type Answered = Pin<Box<dyn Future<Output = Result<Answer, ApiError>> + Send>>;

/// Answers a request to a path below `/_emulator/`.
///
/// # Errors
/// 404 for no control, and the control's own errors.
pub(crate) async fn answer(
    hub: &Arc<Hub>,
    method: &Method,
    path: &str,
    query: Query,
    body: Bytes,
) -> Result<Answer, ApiError> {
    let found = CONTROLS.iter().find_map(|control| {
        let ids = matched(control.path, path)?;
        (control.method == *method).then_some((control, ids))
    });
    let (control, ids) = found
        .ok_or_else(|| ApiError::not_found("control", &format!("{method} /_emulator/{path}")))?;
    let call = Call {
        hub: Arc::clone(hub),
        ids: ids.into_iter().map(decoded).collect(),
        query,
        body,
    };
    (control.run)(call).await
}

impl Call {
    pub(crate) fn id(&self, at: usize) -> &str {
        self.ids.get(at).map(|id| &**id).unwrap_or_default()
    }
}
