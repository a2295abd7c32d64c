//! The service's API at `/api/v1`: section *Endpoints* of the specification as one table.

mod auth;
mod data_models;
mod properties;
mod rows;
mod things;

use bytes::Bytes;
use http::Method;

pub(crate) use auth::{Caller, identify};
pub(crate) use rows::{Meta, created_rows, deleted_row, list_rows, updated_row};

use crate::answer::{Answer, ApiError};
use crate::hub::Hub;
use crate::model::Scope;
use crate::path;
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

/// A row of the specification's endpoint overview.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Below `/api/v1/`; `*` stands for an id.
    pub(crate) path: &'static str,
    pub(crate) scope: Needs,
    run: fn(&Call<'_>) -> Result<Answer, ApiError>,
}

/// The scope of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Scope(Scope),
    /// The overview says write, the scope list says admin: a switch decides.
    Switched,
}

const READ: Needs = Needs::Scope(Scope::Read);
const WRITE: Needs = Needs::Scope(Scope::Write);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

const fn at(
    method: Method,
    path: &'static str,
    scope: Needs,
    run: fn(&Call<'_>) -> Result<Answer, ApiError>,
) -> Endpoint {
    Endpoint {
        method,
        path,
        scope,
        run,
    }
}

/// The endpoint overview.
pub(crate) const ENDPOINTS: &[Endpoint] = &[
    at(Method::GET, "blocks", READ, things::list_blocks),
    at(Method::GET, "blocks/*", READ, things::get_block),
    at(Method::POST, "blocks", WRITE, things::create_block),
    at(Method::PATCH, "blocks/*", WRITE, things::change_block),
    at(Method::DELETE, "blocks/*", WRITE, things::delete_block),
    at(Method::GET, "datamodels", READ, data_models::list),
    at(Method::GET, "datamodels/*", READ, data_models::get),
    at(
        Method::POST,
        "datamodels",
        Needs::Switched,
        data_models::create,
    ),
    at(
        Method::PATCH,
        "datamodels/*",
        Needs::Switched,
        data_models::change,
    ),
    at(
        Method::PATCH,
        "datamodels/*/properties",
        ADMIN,
        properties::change,
    ),
    at(
        Method::DELETE,
        "datamodels/*",
        Needs::Switched,
        data_models::delete,
    ),
    at(Method::GET, "datamodels/*/rows", READ, rows::list),
    at(Method::POST, "datamodels/*/rows", WRITE, rows::create),
    at(Method::PATCH, "datamodels/*/rows/*", WRITE, rows::update),
    at(Method::DELETE, "datamodels/*/rows/*", WRITE, rows::delete),
    at(Method::GET, "workflows", READ, things::list_workflows),
    at(Method::GET, "workflows/*", READ, things::get_workflow),
    at(Method::POST, "workflows", WRITE, things::create_workflow),
    at(Method::PATCH, "workflows/*", WRITE, things::change_workflow),
    at(
        Method::DELETE,
        "workflows/*",
        WRITE,
        things::delete_workflow,
    ),
    at(Method::POST, "workflows/*/run", WRITE, things::run_workflow),
    at(Method::GET, "stats", READ, things::list_stats),
    at(Method::GET, "stats/*", READ, things::get_stat),
    at(Method::POST, "stats", WRITE, things::create_stat),
    at(Method::PATCH, "stats/*", WRITE, things::change_stat),
    at(Method::DELETE, "stats/*", WRITE, things::delete_stat),
    at(Method::POST, "stats/*/run", WRITE, things::run_stat),
    at(Method::GET, "pages/*", READ, things::get_page),
];

impl Endpoint {
    /// Runs the endpoint for a caller with its scope.
    ///
    /// # Errors
    /// As the specification's table says.
    pub(crate) fn run(&self, call: &Call<'_>) -> Result<Answer, ApiError> {
        (self.run)(call)
    }
}

/// Finds the endpoint of a path below `/api/v1/`, with the ids in it.
pub(crate) fn endpoint<'p>(
    method: &Method,
    path: &'p str,
) -> Option<(&'static Endpoint, Vec<&'p str>)> {
    let found = ENDPOINTS
        .iter()
        .filter(|endpoint| endpoint.method == *method);
    found
        .filter_map(|endpoint| Some((endpoint, path::matched(endpoint.path, path)?)))
        .next()
}

impl Call<'_> {
    /// Returns an id of the path.
    pub(crate) fn id(&self, at: usize) -> &str {
        self.ids.get(at).copied().unwrap_or_default()
    }
}
