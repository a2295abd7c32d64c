//! A request to one endpoint, and the scope that it needs.

use bytes::Bytes;

use crate::hub::Hub;
use crate::model::Scope;
use crate::query::Query;

/// A request to one endpoint.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) hub: &'a Hub,
    /// The ids of the path, in order.
    pub(crate) ids: Vec<&'a str>,
    pub(crate) query: &'a Query,
    pub(crate) body: &'a Bytes,
}

/// The scope of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Scope(Scope),
    /// The overview says write, the scope list says admin: a switch decides.
    Switched,
}

impl Call<'_> {
    /// Returns an id of the path.
    pub(crate) fn id(&self, at: usize) -> &str {
        self.ids.get(at).copied().unwrap_or_default()
    }
}
