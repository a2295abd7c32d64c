//! The workspace and everything in it.

mod data_model;
mod form;
mod key;
mod order;
mod property;
mod rows;
mod state;

pub(crate) use data_model::{DataModel, Icon, check_value};
pub(crate) use form::{Misfit, Step, check_icon, check_properties_form};
pub(crate) use key::{KEY_FORMS, Key, Scope};
pub(crate) use key::{Rate, Rates};
pub(crate) use order::Search;
pub(crate) use order::{OrderBy, page};
pub(crate) use property::{Property, PropertyType, check_properties};
pub(crate) use rows::RowData;
pub(crate) use rows::{Row, RowList, Rows};
pub(crate) use state::Things;
pub(crate) use state::{Kind, State, Workspace};
