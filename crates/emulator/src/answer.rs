//! The service's response envelope and its errors.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde_json::json;

/// An answer before its headers are added.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
}

impl Answer {
    /// Any JSON.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self {
            status: StatusCode::OK,
            // Values of this crate have string keys, so they can be written.
            body: serde_json::to_vec(value).unwrap_or_default().into(),
            headers: HeaderMap::new(),
        }
    }

    /// `{ data: object }`.
    pub(crate) fn data(data: &impl Serialize) -> Self {
        #[derive(Serialize)]
        struct Single<'a, D> {
            data: &'a D,
        }
        Self::json(&Single { data })
    }

    /// `{ data: array, meta: object }`.
    pub(crate) fn list(data: &impl Serialize, meta: &impl Serialize) -> Self {
        #[derive(Serialize)]
        struct List<'a, D, M> {
            data: &'a D,
            meta: &'a M,
        }
        Self::json(&List { data, meta })
    }

    pub(crate) fn deleted(id: &str) -> Self {
        Self::data(&json!({ "id": id, "deleted": true }))
    }

    pub(crate) fn nothing() -> Self {
        Self {
            status: StatusCode::NO_CONTENT,
            body: Bytes::new(),
            headers: HeaderMap::new(),
        }
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }
}

/// An error of the specification's table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            code,
            message,
        }
    }

    pub(crate) fn validation(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "VALIDATION_ERROR", message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", message)
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "FORBIDDEN", message)
    }

    pub(crate) fn not_found(kind: &str, id: &str) -> Self {
        let message = format!("{kind} `{id}` does not exist");
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    pub(crate) fn rate_limited(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "RATE_LIMITED", message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", message)
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        let body = json!({ "error": { "code": error.code, "message": error.message } });
        Self::json(&body).with_status(error.status)
    }
}
