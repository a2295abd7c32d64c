//! The workspace and everything in it.

mod data_model;
mod form;
mod key;
mod order;
mod property;
mod rate;
mod row_data;
mod rows;
mod search;
mod state;
mod things;
mod value;

pub(crate) use data_model::{DataModel, Icon, check_value};
pub(crate) use form::{Misfit, Step, check_icon, check_properties_form};
pub(crate) use key::{KEY_FORMS, Key, Scope};
pub(crate) use order::{OrderBy, page};
pub(crate) use property::{Property, PropertyType, check_properties};
pub(crate) use rate::{Rate, Rates};
pub(crate) use row_data::RowData;
pub(crate) use rows::{Row, RowList, Rows};
pub(crate) use search::Search;
pub(crate) use state::{Kind, State, Workspace};
pub(crate) use things::Things;
