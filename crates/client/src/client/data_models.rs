//! Data models.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Client;
use crate::address::{Query, segment};
use crate::error::{Error, ErrorKind, Scope};
use crate::model::DataModel;

/// The data models, from [`Client::data_models`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DataModels {
    client: Client,
    search: Option<String>,
    details: bool,
    row_counts: bool,
}

impl DataModels {
    /// Lists only data models whose title or id matches this text.
    pub fn search(mut self, text: &str) -> Self {
        self.search = Some(text.to_owned());
        self
    }

    /// Lists them with their properties.
    pub fn details(mut self) -> Self {
        self.details = true;
        self
    }

    /// Lists them with their row counts, in [`DataModel::extra`]: the specification does not show
    /// the field's name.
    pub fn row_counts(mut self) -> Self {
        self.row_counts = true;
        self
    }

    /// Lists them. The list has no pages: if the service has more than it sends by default, a
    /// second request asks for all.
    ///
    /// # Errors
    /// See [`ErrorKind`]; `Answer` if the service does not send all of them.
    pub async fn list(&self) -> Result<Vec<DataModel>, Error> {
        #[derive(Deserialize)]
        struct Models {
            data: Vec<DataModel>,
            meta: Total,
        }
        #[derive(Deserialize)]
        struct Total {
            total: usize,
        }
        let mut models: Models = self.client.whole(&self.path(None)).await?;
        if models.data.len() < models.meta.total {
            let path = self.path(Some(models.meta.total));
            models = self.client.whole(&path).await?;
        }
        let Models { data, meta } = models;
        if data.len() < meta.total {
            let message = format!(
                "the service lists {} of its {} data models; search for some of them",
                data.len(),
                meta.total
            );
            return Err(Error::new(ErrorKind::Answer, message).of_request("GET /datamodels"));
        }
        Ok(data)
    }

    fn path(&self, limit: Option<usize>) -> String {
        let mut query = Query::new("/datamodels");
        if let Some(search) = &self.search {
            query.add("search", search);
        }
        if self.details {
            query.add("includeDetails", "true");
        }
        if self.row_counts {
            query.add("includeRowCounts", "true");
        }
        if let Some(limit) = limit {
            query.add("limit", &limit.to_string());
        }
        query.0
    }
}

impl Client {
    /// Returns the data models, to search and list them.
    pub fn data_models(&self) -> DataModels {
        DataModels {
            client: self.clone(),
            search: None,
            details: false,
            row_counts: false,
        }
    }

    /// Gets a data model with its properties.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn data_model(&self, id: &str) -> Result<DataModel, Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        self.get(&path).await
    }

    /// Creates a data model. The specification shows no payload: request and answer are raw JSON.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn create_data_model(
        &self,
        model: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        self.write(Method::POST, "/datamodels", model, Scope::Admin)
            .await
    }

    /// Changes a data model. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn update_data_model(
        &self,
        id: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        self.write(Method::PATCH, &path, changes, Scope::Admin)
            .await
    }

    /// Adds and removes properties of a data model. The specification shows no payload.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn change_properties(
        &self,
        id: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = format!("/datamodels/{}/properties", segment(id)?);
        let changed = self
            .write(Method::PATCH, &path, changes, Scope::Admin)
            .await;
        self.shared.names.forget(id);
        changed
    }

    /// Deletes a data model with its rows.
    ///
    /// # Errors
    /// See [`ErrorKind`].
    pub async fn delete_data_model(&self, id: &str) -> Result<(), Error> {
        let path = format!("/datamodels/{}", segment(id)?);
        let deleted = self.delete(&path, Scope::Admin, None).await;
        self.shared.names.forget(id);
        deleted
    }
}
