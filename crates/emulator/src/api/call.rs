//! A request to one endpoint of the API.

use bytes::Bytes;

use crate::hub::Hub;
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

impl Call<'_> {
    /// Returns an id of the path.
    pub(crate) fn id(&self, at: usize) -> &str {
        self.ids.get(at).copied().unwrap_or_default()
    }
}
