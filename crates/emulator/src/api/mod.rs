//! The service's API at `/api/v1`: section *Endpoints* of the specification as one table.

mod auth;
mod call;
mod data_models;
mod properties;
mod rows;
mod things;

use http::Method;

pub(crate) use auth::{Caller, identify};
pub(crate) use call::{Call, Needs};
pub(crate) use rows::{created_rows, deleted_row, list_rows, updated_row};

use crate::answer::{Answer, ApiError};
use crate::model::Scope;
use crate::path;

/// A row of the specification's endpoint overview.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Below `/api/v1/`; `*` stands for an id.
    pub(crate) path: &'static str,
    pub(crate) scope: Needs,
    run: fn(&Call<'_>) -> Result<Answer, ApiError>,
}

const READ: Needs = Needs::Scope(Scope::Read);
const WRITE: Needs = Needs::Scope(Scope::Write);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

macro_rules! endpoints {
    ($($method:ident $path:literal $scope:expr => $run:path;)*) => {
        /// The endpoint overview.
        pub(crate) const ENDPOINTS: &[Endpoint] = &[
            $(Endpoint { method: Method::$method, path: $path, scope: $scope, run: $run },)*
        ];
    };
}

endpoints! {
    GET "blocks" READ => things::list_blocks;
    GET "blocks/*" READ => things::get_block;
    POST "blocks" WRITE => things::create_block;
    PATCH "blocks/*" WRITE => things::change_block;
    DELETE "blocks/*" WRITE => things::delete_block;
    GET "datamodels" READ => data_models::list;
    GET "datamodels/*" READ => data_models::get;
    POST "datamodels" Needs::Switched => data_models::create;
    PATCH "datamodels/*" Needs::Switched => data_models::change;
    PATCH "datamodels/*/properties" ADMIN => properties::change;
    DELETE "datamodels/*" Needs::Switched => data_models::delete;
    GET "datamodels/*/rows" READ => rows::list;
    POST "datamodels/*/rows" WRITE => rows::create;
    PATCH "datamodels/*/rows/*" WRITE => rows::update;
    DELETE "datamodels/*/rows/*" WRITE => rows::delete;
    GET "workflows" READ => things::list_workflows;
    GET "workflows/*" READ => things::get_workflow;
    POST "workflows" WRITE => things::create_workflow;
    PATCH "workflows/*" WRITE => things::change_workflow;
    DELETE "workflows/*" WRITE => things::delete_workflow;
    POST "workflows/*/run" WRITE => things::run_workflow;
    GET "stats" READ => things::list_stats;
    GET "stats/*" READ => things::get_stat;
    POST "stats" WRITE => things::create_stat;
    PATCH "stats/*" WRITE => things::change_stat;
    DELETE "stats/*" WRITE => things::delete_stat;
    POST "stats/*/run" WRITE => things::run_stat;
    GET "pages/*" READ => things::get_page;
}

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
