//! Rows, by the properties' names or by their ids.

mod batch;
mod names;
#[cfg(feature = "reconcile")]
mod note;

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use http::Method;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::address::{Query, config, segment};
use crate::client::{Client, Data};
use crate::error::{Error, Scope};
use crate::list::{List, Meta, Page};

pub use batch::Created;

/// The most rows of a page.
const LARGEST_PAGE: u32 = 500;
/// The rows of a batch, where nothing else is set: the specification shows no maximum.
const BATCH: usize = 100;

/// A row. Its values are those of the type `R`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row<R> {
    /// Its id, `row_…`.
    pub id: String,
    /// Its values.
    pub properties: R,
    /// The time of its creation, ISO 8601: the specification shows it in lists and for a new row.
    pub created_at: Option<String>,
    /// The time of its last change, ISO 8601: shown in lists and after a change.
    pub updated_at: Option<String>,
}

/// The direction of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The least first.
    Ascending,
    /// The greatest first.
    Descending,
}

/// The rows of a data model, from [`Client::rows`].
pub struct Rows<R> {
    client: Client,
    model: String,
    by_id: bool,
    page_size: u32,
    batch_size: usize,
    order: Vec<(String, Direction)>,
    rows: PhantomData<fn() -> R>,
}

impl Client {
    /// Returns the rows of a data model. They are read and written as `R`, by the properties'
    /// names.
    #[must_use]
    pub fn rows<R>(&self, data_model: &str) -> Rows<R> {
        Rows::new(self.clone(), data_model)
    }
}

impl<R> Clone for Rows<R> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            model: self.model.clone(),
            order: self.order.clone(),
            ..*self
        }
    }
}

impl<R> fmt::Debug for Rows<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

type Values = BTreeMap<String, Box<RawValue>>;

/// A row as the service writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    id: String,
    data: Values,
    #[serde(default)]
    created_at: Option<String>,
    #[serde(default)]
    updated_at: Option<String>,
}

impl<R> Rows<R> {
    fn new(client: Client, model: &str) -> Self {
        Self {
            client,
            model: model.to_owned(),
            by_id: false,
            page_size: LARGEST_PAGE,
            batch_size: BATCH,
            order: Vec::new(),
            rows: PhantomData,
        }
    }

    /// Uses the properties' ids in place of their names: no names are looked up, and names may be
    /// ambiguous.
    #[must_use]
    pub fn by_id(mut self) -> Self {
        self.by_id = true;
        self
    }

    /// Sets the number of rows of a page, 1 to 500, in place of 500.
    #[must_use]
    pub fn page_size(mut self, rows: u32) -> Self {
        self.page_size = rows.clamp(1, LARGEST_PAGE);
        self
    }

    /// Sets the number of rows in a request of [`create_many`](Self::create_many), in place of 100.
    #[must_use]
    pub fn batch_size(mut self, rows: usize) -> Self {
        self.batch_size = rows.max(1);
        self
    }

    /// Sorts lists by this property. Properties of earlier calls have precedence.
    #[must_use]
    pub fn order_by(mut self, property: &str, direction: Direction) -> Self {
        self.order.push((property.to_owned(), direction));
        self
    }

    /// Deletes a row. If a repeat of the request finds no row, the deletion has succeeded.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind); `NotFound` if the first request finds no row.
    pub async fn delete(&self, row: &str) -> Result<(), Error> {
        let path = self.path(Some(row))?;
        let note = self.note(Some(row), &[]).await?;
        let deleted = self.client.delete(&path, Scope::Write, note.before()).await;
        note.end(deleted.as_ref().map(|()| &[][..])).await;
        deleted
    }

    fn path(&self, row: Option<&str>) -> Result<String, Error> {
        let mut path = format!("/datamodels/{}/rows", segment(&self.model)?);
        if let Some(row) = row {
            path.push('/');
            path.push_str(&segment(row)?);
        }
        Ok(path)
    }
}

impl<R: DeserializeOwned> Rows<R> {
    /// Lists the rows.
    ///
    /// ```no_run
    /// # async fn doc(client: hookgate_client::Client) -> Result<(), hookgate_client::Error> {
    /// # type Order = serde_json::Value;
    /// use hookgate_client::Direction;
    ///
    /// let mut orders = client.rows::<Order>("dm_orders").order_by("Due", Direction::Ascending).list();
    /// while let Some(order) = orders.next().await {
    ///     println!("{}", order?.id);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn list(&self) -> List<Row<R>>
    where
        R: Send + 'static,
    {
        let rows = self.clone();
        List::new(move |offset| {
            let rows = rows.clone();
            Box::pin(async move { rows.page(offset).await })
        })
    }

    /// Gets the page that begins after this number of rows.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn page(&self, offset: u64) -> Result<Page<Row<R>>, Error> {
        #[derive(Deserialize)]
        struct Listed {
            data: Vec<Wire>,
            #[serde(default)]
            meta: Meta,
        }
        let mut query = Query::new(&self.path(None)?);
        query.add("limit", &self.page_size.to_string());
        query.add("offset", &offset.to_string());
        if !self.order.is_empty() {
            query.add("orderBy", &self.ordered().await?);
        }
        let Listed { data, meta } = self.client.whole(&query.0).await?;
        let rows = self.decode(data).await;
        let rows = rows.map_err(|error| error.of_request(&format!("GET {}", query.0)))?;
        Page::new(rows, &meta, offset)
    }

    async fn ordered(&self) -> Result<String, Error> {
        let names = self.order.iter().map(|(name, _)| name.as_str());
        let ids: Vec<String> = if self.by_id {
            names.map(str::to_owned).collect()
        } else {
            self.ids(names).await?
        };
        let items = ids.iter().zip(&self.order).map(|(id, (_, direction))| {
            let direction = match direction {
                Direction::Ascending => "asc",
                Direction::Descending => "desc",
            };
            format!("{id}:{direction}")
        });
        Ok(items.collect::<Vec<_>>().join(","))
    }

    /// Creates a row. `null` values are not sent, because they are empty anyway.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). If [`Error::is_outcome_unknown`] is true, the row may
    /// have been created.
    pub async fn create(&self, row: &(impl Serialize + ?Sized)) -> Result<Row<R>, Error> {
        let values = self.encode(row, false).await?;
        self.written(&self.path(None)?, None, &values).await
    }

    /// Changes the properties in `changes`; `null` empties a property.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind). If [`Error::is_outcome_unknown`] is true, the row may
    /// have been changed.
    pub async fn update(
        &self,
        row: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Row<R>, Error> {
        let path = self.path(Some(row))?;
        let values = self.encode(changes, true).await?;
        self.written(&path, Some(row), &values).await
    }

    async fn written(
        &self,
        path: &str,
        row: Option<&str>,
        values: &Values,
    ) -> Result<Row<R>, Error> {
        #[derive(Serialize)]
        struct Single<'v> {
            values: &'v Values,
        }
        let method = match row {
            Some(_) => Method::PATCH,
            None => Method::POST,
        };
        let name = format!("{method} {path}");
        let body = serde_json::to_vec(&Single { values })
            .map_err(|_| config("the row can't be written"))?;
        let note = self.note(row, std::slice::from_ref(values)).await?;
        let written = self
            .client
            .write_whole(method, path, body.into(), Scope::Write, note.before())
            .await
            .map(|Data { data }: Data<Wire>| data);
        note.end(written.as_ref().map(std::slice::from_ref)).await;
        let row = written?;
        let id = row.id.clone();
        let row = self.decode(vec![row]).await.map(|mut rows| rows.pop());
        match row {
            Ok(Some(row)) => Ok(row),
            Ok(None) => Err(config("there is no row")),
            Err(error) => {
                let (row, why) = (format!("row {id}: "), error.message());
                let why = why.strip_prefix(&row).unwrap_or(why);
                let message = format!("the answer's row {id} can't be read: {why}");
                let error = Error::new(error.kind(), message);
                Err(error.of_request(&name).maybe_made())
            }
        }
    }
}

/// Without the feature `reconcile` no write is noted.
#[cfg(not(feature = "reconcile"))]
mod note {
    use super::{Rows, Values, Wire};
    use crate::call::Before;
    use crate::error::Error;

    pub(super) struct Note;

    impl<R> Rows<R> {
        pub(super) async fn note(&self, _: Option<&str>, _: &[Values]) -> Result<Note, Error> {
            Ok(Note)
        }
    }

    impl Note {
        pub(super) fn before(&self) -> Option<Before<'_>> {
            None
        }

        pub(super) async fn end(self, _: Result<&[Wire], &Error>) {}
    }
}
