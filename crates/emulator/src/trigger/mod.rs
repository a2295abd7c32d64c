//! Inbound workflow triggers: calls at `/webhooks/<workflow_id>`.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use serde::{Deserialize, Serialize};

use crate::live::Live;
use crate::switches::Switches;

/// A trigger, as in a seed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Trigger {
    pub(crate) workflow_id: String,
    #[serde(flatten)]
    rest: serde_json::Map<String, serde_json::Value>,
}

impl Trigger {
    /// Checks what the form does not say.
    ///
    /// # Errors
    /// The field, and a sentence.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        Ok(())
    }
}

/// The triggers of the workspace. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Triggers {
    list: Arc<Mutex<Vec<Trigger>>>,
}

impl Triggers {
    pub(crate) fn new(_switches: Switches, _live: Live) -> Self {
        let list = Arc::default();
        Self { list }
    }

    pub(crate) fn set(&self, triggers: Vec<Trigger>) {
        *self.list.lock().unwrap_or_else(PoisonError::into_inner) = triggers;
    }

    pub(crate) fn list(&self) -> Vec<Trigger> {
        self.list
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Answers a call; `None` where no trigger has this path.
    pub(crate) async fn call(
        &self,
        _method: &Method,
        _path: &str,
        _query: &str,
        _headers: &HeaderMap,
        _body: Bytes,
    ) -> Option<Response<Bytes>> {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NOT_FOUND;
        None
    }
}
