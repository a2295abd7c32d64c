//! The error of a call of a database inside this crate: `?` makes it of an error of its driver too.

use hookgate::dedupe::StoreError;

#[derive(Debug)]
pub(crate) struct Fault(StoreError);

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self(error)
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self(hookgate_sqlite::store_error(error))
    }
}

#[cfg(feature = "postgres")]
impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(hookgate_postgres::store_error(error))
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        fault.0
    }
}
