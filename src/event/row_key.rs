//! Which row an event is about, for whoever handles one event of a row at a time.

use std::borrow::Cow;

use serde::Deserialize;

use crate::verify::{SignedBytes, Verified};

/// The ids of data model and row. `None` where the body does not name both readably: such an event is about no row that
/// another one could be about.
pub(crate) fn row_of<B: SignedBytes>(
    verified: &Verified<B>,
) -> Option<(Cow<'_, str>, Cow<'_, str>)> {
    let envelope: Envelope<'_> = serde_json::from_slice(verified.body()).ok()?;
    Some((envelope.data.datamodel_id, envelope.data.row_id))
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    data: Data<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    #[serde(borrow, rename = "datamodelId")]
    datamodel_id: Cow<'a, str>,
    #[serde(borrow)]
    row_id: Cow<'a, str>,
}
