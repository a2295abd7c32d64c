//! Values by name, written and read as values by id.

use std::sync::Arc;

use hookgate::internal::from_foreign_json;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Row, Rows, Values, Wire};
use crate::error::{Error, ErrorKind};
use crate::json;
use crate::names::{Names, NoId};

impl<R> Rows<R> {
    /// Returns the ids of names; asks for the data model once more where one is not known.
    pub(super) async fn ids<'n>(
        &self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> Result<Vec<String>, Error> {
        let mut known = self.client.names(&self.model, None).await?;
        let mut is_new = false;
        loop {
            let ids: Result<Vec<_>, _> = names
                .clone()
                .map(|name| known.id(name).map(str::to_owned))
                .collect();
            match ids {
                Ok(ids) => return Ok(ids),
                Err(NoId::Ambiguous(error)) => return Err(error),
                Err(NoId::Unknown(error)) if is_new => return Err(error),
                Err(NoId::Unknown(_)) => {
                    known = self.client.names(&self.model, Some(known.since)).await?;
                    is_new = true;
                }
            }
        }
    }

    /// Writes values by name as values by id.
    pub(super) async fn encode(
        &self,
        row: &(impl Serialize + ?Sized),
        with_null: bool,
    ) -> Result<Values, Error> {
        // As a text, so that numbers keep their digits.
        let text = serde_json::to_string(row).map_err(|error| {
            Error::new(
                ErrorKind::Row,
                format!("no JSON can be written of the row: {error}"),
            )
        })?;
        let mut values: Values = from_foreign_json(text.as_bytes()).map_err(|_| {
            Error::new(
                ErrorKind::Row,
                "the row is not an object of values by property",
            )
        })?;
        if !with_null {
            values.retain(|_, value| value.get() != "null");
        }
        if self.by_id {
            return Ok(values);
        }
        let ids = self.ids(values.keys().map(String::as_str)).await?;
        Ok(ids.into_iter().zip(values.into_values()).collect())
    }
}

impl<R: DeserializeOwned> Rows<R> {
    /// Reads rows with their values by name. If an id has no name, even after the data model was
    /// asked for again, the id is used as the name, so that no value is lost.
    pub(super) async fn decode(&self, rows: Vec<Wire>) -> Result<Vec<Row<R>>, Error> {
        let names = match self.by_id || rows.is_empty() {
            true => None,
            false => Some(self.names_of(&rows).await?),
        };
        rows.into_iter()
            .map(|row| {
                let mut values = Vec::with_capacity(row.data.len());
                for (id, value) in &row.data {
                    let name = match &names {
                        Some(names) => names.name(id)?,
                        None => None,
                    };
                    values.push((name.unwrap_or(id), &**value));
                }
                Ok(Row {
                    properties: json::row(&row.id, &values)?,
                    id: row.id,
                    created_at: row.created_at,
                    updated_at: row.updated_at,
                })
            })
            .collect()
    }

    async fn names_of(&self, rows: &[Wire]) -> Result<Arc<Names>, Error> {
        let names = self.client.names(&self.model, None).await?;
        let missing = names.missing(rows.iter().flat_map(|row| row.data.keys()));
        if missing.is_empty() {
            return Ok(names);
        }
        let newer = self.client.names(&self.model, Some(names.since)).await?;
        newer.asked_for(missing, &names);
        Ok(newer)
    }
}
