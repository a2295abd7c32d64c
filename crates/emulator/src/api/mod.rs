//! The service's API at `/api/v1`: section *Endpoints* of the specification as one table.

mod auth;
mod call;
mod data_models;
mod rows;
mod things;

use http::Method;

pub(crate) use auth::{Caller, identify};
pub(crate) use call::Call;
pub(crate) use rows::{created_rows, deleted_row, list_rows, updated_row};

use crate::answer::{Answer, ApiError};
use crate::model::{Kind, Scope};

/// A row of the specification's endpoint overview.
pub(crate) struct Endpoint {
    pub(crate) method: Method,
    /// Below `/api/v1/`; `*` stands for an id.
    pub(crate) path: &'static str,
    pub(crate) scope: Needs,
    pub(crate) run: fn(&Call<'_>) -> Result<Answer, ApiError>,
}

const READ: Needs = Needs::Scope(Scope::Read);
const WRITE: Needs = Needs::Scope(Scope::Write);
const ADMIN: Needs = Needs::Scope(Scope::Admin);

macro_rules! endpoints {
    ($($method:ident $path:literal $scope:expr => $run:expr;)*) => {
        /// The endpoint overview.
        pub(crate) const ENDPOINTS: &[Endpoint] = &[
            $(Endpoint { method: Method::$method, path: $path, scope: $scope, run: $run },)*
        ];
    };
}

endpoints! {
    GET "blocks" READ => |call| things::list(call, Kind::Block);
    GET "blocks/*" READ => |call| things::get(call, Kind::Block);
    POST "blocks" WRITE => |call| things::create(call, Kind::Block);
    PATCH "blocks/*" WRITE => |call| things::change(call, Kind::Block);
    DELETE "blocks/*" WRITE => |call| things::delete(call, Kind::Block);
    GET "datamodels" READ => data_models::list;
    GET "datamodels/*" READ => data_models::get;
    POST "datamodels" Needs::Switched => data_models::create;
    PATCH "datamodels/*" Needs::Switched => data_models::change;
    PATCH "datamodels/*/properties" ADMIN => data_models::change_properties;
    DELETE "datamodels/*" Needs::Switched => data_models::delete;
    GET "datamodels/*/rows" READ => rows::list;
    POST "datamodels/*/rows" WRITE => rows::create;
    PATCH "datamodels/*/rows/*" WRITE => rows::update;
    DELETE "datamodels/*/rows/*" WRITE => rows::delete;
    GET "workflows" READ => |call| things::list(call, Kind::Workflow);
    GET "workflows/*" READ => |call| things::get(call, Kind::Workflow);
    POST "workflows" WRITE => |call| things::create(call, Kind::Workflow);
    PATCH "workflows/*" WRITE => |call| things::change(call, Kind::Workflow);
    DELETE "workflows/*" WRITE => |call| things::delete(call, Kind::Workflow);
    POST "workflows/*/run" WRITE => |call| things::run(call, Kind::Workflow);
    GET "stats" READ => |call| things::list(call, Kind::Stat);
    GET "stats/*" READ => |call| things::get(call, Kind::Stat);
    POST "stats" WRITE => |call| things::create(call, Kind::Stat);
    PATCH "stats/*" WRITE => |call| things::change(call, Kind::Stat);
    DELETE "stats/*" WRITE => |call| things::delete(call, Kind::Stat);
    POST "stats/*/run" WRITE => |call| things::run(call, Kind::Stat);
    GET "pages/*" READ => |call| things::get(call, Kind::Page);
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
        .filter_map(|endpoint| Some((endpoint, matched(endpoint.path, path)?)))
        .next()
}

/// Returns the parts of a path that stand for the `*` of a pattern; `None` if the path is another
/// one.
pub(crate) fn matched<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let mut ids = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected == "*" && !part.is_empty() {
            ids.push(part);
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(ids)
}

/// The scope of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Scope(Scope),
    /// The overview says write, the scope list says admin: a switch decides.
    Switched,
}

#[cfg(test)]
mod tests {
    use super::matched;

    #[test]
    fn a_star_stands_for_one_part() {
        assert_eq!(matched("a/*/b/*", "a/1/b/2"), Some(vec!["1", "2"]));
        for path in ["a/1/b", "a/1/b/2/", "a//b/2", "a/1/c/2", ""] {
            assert_eq!(matched("a/*/b/*", path), None, "{path}");
        }
    }
}
