//! Blocks, workflows and stats, whose payloads the specification does not show: JSON as it is.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::address::{Query, segment};
use crate::client::Client;
use crate::error::{Error, Scope};
use crate::list::{List, Meta, Page};

/// The objects of a group whose payloads the specification does not show: [`Client::blocks`],
/// [`Client::workflows`], [`Client::stats`].
#[derive(Clone, Debug)]
pub struct Objects {
    client: Client,
    path: &'static str,
    search: Option<String>,
}

impl Client {
    /// Returns a handle to the blocks.
    #[must_use]
    pub fn blocks(&self) -> Objects {
        Objects::new(self.clone(), "/blocks")
    }

    /// Returns a handle to the workflows.
    #[must_use]
    pub fn workflows(&self) -> Objects {
        Objects::new(self.clone(), "/workflows")
    }

    /// Returns a handle to the stat definitions.
    #[must_use]
    pub fn stats(&self) -> Objects {
        Objects::new(self.clone(), "/stats")
    }
}

impl Objects {
    fn new(client: Client, path: &'static str) -> Self {
        Self {
            client,
            path,
            search: None,
        }
    }

    /// Lists only those that match this text.
    #[must_use]
    pub fn search(mut self, text: &str) -> Self {
        self.search = Some(text.to_owned());
        self
    }

    /// Lists them.
    pub fn list(&self) -> List<Value> {
        #[derive(Deserialize)]
        struct Listed {
            data: Vec<Value>,
            #[serde(default)]
            meta: Meta,
        }
        let objects = self.clone();
        List::new(move |offset| {
            let objects = objects.clone();
            Box::pin(async move {
                let mut query = Query::new(objects.path);
                if let Some(search) = &objects.search {
                    query.add("search", search);
                }
                if offset > 0 {
                    query.add("offset", &offset.to_string());
                }
                let Listed { data, meta } = objects.client.whole(&query.0).await?;
                Page::new(data, &meta, offset)
            })
        })
    }

    /// Gets one.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn get(&self, id: &str) -> Result<Value, Error> {
        self.client.get(&self.one(id)?).await
    }

    /// Creates one.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn create(&self, object: &(impl Serialize + ?Sized)) -> Result<Value, Error> {
        let path = self.path;
        self.client
            .write(Method::POST, path, object, Scope::Write)
            .await
    }

    /// Changes one.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn update(
        &self,
        id: &str,
        changes: &(impl Serialize + ?Sized),
    ) -> Result<Value, Error> {
        let path = self.one(id)?;
        self.client
            .write(Method::PATCH, &path, changes, Scope::Write)
            .await
    }

    /// Deletes one.
    ///
    /// # Errors
    /// See [`ErrorKind`](crate::ErrorKind).
    pub async fn delete(&self, id: &str) -> Result<(), Error> {
        self.client.delete(&self.one(id)?, Scope::Write, None).await
    }

    fn one(&self, id: &str) -> Result<String, Error> {
        Ok(format!("{}/{}", self.path, segment(id)?))
    }
}
