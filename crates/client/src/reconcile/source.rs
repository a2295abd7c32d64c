//! The source of the rows: the client, or another one.

use std::error::Error as StdError;

use hookgate::{
    dedupe::StoreFuture,
    event::{DataModelId, Fields},
};

use super::columns::Column;
use super::steps::{PassPage, PassRow};
use crate::{Client, Error, ErrorKind};

/// The source from which a reconciliation reads the service's rows: a [`Client`], or your own.
pub trait RowSource: Send + Sync {
    /// The error of a request.
    type Error: StdError + Send + Sync + 'static;

    /// Returns the present properties of the data model, without a cache.
    fn columns<'a>(&'a self, model: &'a DataModelId) -> StoreFuture<'a, Vec<Column>, Self::Error>;

    /// Returns a page of the data model's rows, by property id, in the list's own order.
    fn page<'a>(
        &'a self,
        model: &'a DataModelId,
        offset: u64,
        limit: u64,
    ) -> StoreFuture<'a, PassPage, Self::Error>;

    /// Returns whether the error says that there is no such data model. `false` by default.
    fn is_no_model(&self, error: &Self::Error) -> bool {
        let _ = error;
        false
    }
}

/// The share of the request rate that a reconciliation takes at most.
const RATE_SHARE: f64 = 0.5;

/// Takes at most half of the request rate, or the client's
/// [`Options::rate_share`](crate::Options::rate_share) if that is less. The client's other options
/// apply.
impl RowSource for Client {
    type Error = Error;

    fn columns<'a>(&'a self, model: &'a DataModelId) -> StoreFuture<'a, Vec<Column>, Error> {
        StoreFuture::boxed(async move {
            let model = at_half_rate(self).data_model(model.as_str()).await?;
            let columns = model.properties.into_iter().map(|property| Column {
                id: property.id,
                name: property.name,
                kind: property.r#type.as_str().to_owned(),
            });
            Ok(columns.collect())
        })
    }

    fn page<'a>(
        &'a self,
        model: &'a DataModelId,
        offset: u64,
        limit: u64,
    ) -> StoreFuture<'a, PassPage, Error> {
        StoreFuture::boxed(async move {
            let rows = at_half_rate(self).rows::<Fields>(model.as_str()).by_id();
            let page = rows
                .page_size(u32::try_from(limit).unwrap_or(u32::MAX))
                .page(offset)
                .await?;
            let rows = page.items.into_iter().map(|row| PassRow {
                id: row.id.into(),
                data: row.properties,
                created_at: row.created_at.unwrap_or_default(),
                updated_at: row.updated_at.unwrap_or_default(),
            });
            Ok(PassPage {
                rows: rows.collect(),
                total: page.total,
            })
        })
    }

    fn is_no_model(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::NotFound
    }
}

fn at_half_rate(client: &Client) -> Client {
    let options = client.options();
    client.with(options.rate_share(options.rate_share.min(RATE_SHARE)))
}
