//! Many rows, created in batches.

use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Row, Rows, Values, Wire};
use crate::address::config;
use crate::error::{BatchProgress, Error, RowError, Scope};

/// The result of [`Rows::create_many`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Created<R> {
    /// The new rows, in the order of the input, without the refused rows.
    pub rows: Vec<Row<R>>,
    /// The rows that the service refused.
    pub errors: Vec<RowError>,
}

impl<R: DeserializeOwned> Rows<R> {
    /// Creates rows, in requests of [`batch_size`](Self::batch_size) rows. Rows that the service
    /// refuses are in [`Created::errors`]; the other rows are created.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). If a request fails, [`Error::batch`] says which rows
    /// the earlier requests created, and [`Error::is_outcome_unknown`] is only about the rows of
    /// that request.
    pub async fn create_many<S: Serialize>(&self, rows: &[S]) -> Result<Created<R>, Error> {
        let mut created = Created {
            rows: Vec::with_capacity(rows.len()),
            errors: Vec::new(),
        };
        // Before the first request is sent: a name that is wrong anywhere creates nothing.
        let mut encoded = Vec::with_capacity(rows.len());
        for row in rows {
            encoded.push(self.encode(row, false).await?);
        }
        let mut first = 0;
        for batch in encoded.chunks(self.batch_size) {
            let mut ids = Vec::new();
            let made = self
                .create_batch(batch, first, &mut created.errors, &mut ids)
                .await;
            match made {
                Ok(made) => created.rows.extend(made),
                Err(error) => {
                    let before = created.rows.into_iter().map(|row| row.id);
                    return Err(error.in_batch(BatchProgress {
                        failed_at: first,
                        failed_rows: batch.len(),
                        created: before.chain(ids).collect(),
                        errors: created.errors,
                    }));
                }
            }
            first += batch.len();
        }
        Ok(created)
    }

    async fn create_batch(
        &self,
        batch: &[Values],
        first: usize,
        errors: &mut Vec<RowError>,
        ids: &mut Vec<String>,
    ) -> Result<Vec<Row<R>>, Error> {
        #[derive(Serialize)]
        struct Batch<'v> {
            rows: &'v [Values],
        }
        #[derive(Deserialize)]
        struct Made {
            data: Vec<Wire>,
            #[serde(default)]
            meta: Errors,
        }
        #[derive(Default, Deserialize)]
        struct Errors {
            #[serde(default)]
            errors: Vec<Value>,
        }
        let path = self.path(None)?;
        let body = serde_json::to_vec(&Batch { rows: batch })
            .map_err(|_| config("the rows can't be written"))?;
        let note = self.note(None, batch).await?;
        let made = self
            .client
            .write_whole(
                Method::POST,
                &path,
                body.into(),
                Scope::Write,
                note.before(),
            )
            .await;
        note.end(made.as_ref().map(|made: &Made| &*made.data)).await;
        let made = made?;
        errors.extend(made.meta.errors.into_iter().map(|json| {
            let json = self.client.without_key(json);
            let index = json.get("index").and_then(Value::as_u64);
            let index = index.and_then(|index| usize::try_from(index).ok());
            let index = index.filter(|index| *index < batch.len());
            RowError {
                index: first + index.unwrap_or_default(),
                is_exact: index.is_some(),
                json,
            }
        }));
        ids.extend(made.data.iter().map(|row| row.id.clone()));
        let rows = self.decode(made.data).await;
        rows.map_err(|error| error.of_request(&format!("POST {path}")).maybe_made())
    }
}
