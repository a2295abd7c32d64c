//! The row of an event, for workers that handle one event of a row at a time.

use std::borrow::Cow;

use serde::Deserialize;

use crate::verify::{SignedBytes, Verified};

/// Returns the ids of data model and row. `None` where the body does not name both in readable form: such an event shares its
/// row with no other event.
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
