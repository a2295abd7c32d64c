//! SQLite and PostgreSQL behind one call: a statement with its values, and the rows that it
//! returns.
//!
//! Mirrors and ledgers write one body of SQL for both. Values are `$1`, `$2`, …; a change says with
//! `RETURNING` what it changed.

#[cfg(feature = "postgres")]
pub(crate) mod postgres;
#[cfg(feature = "sqlite")]
pub(crate) mod sqlite;

use hookgate::dedupe::{StoreError, StoreErrorKind, StoreFuture};

/// The values of one statement are not more than either database takes.
pub(crate) const MOST_VALUES: usize = 5_000;

/// A database.
pub trait Engine: Clone + Send + Sync + 'static {
    /// The present time, as a mirror keeps it.
    const NOW: &'static str;
    /// The time `$3` seconds ago.
    const AGO: &'static str;

    /// Runs a statement.
    fn run(&self, sql: String, values: Vec<Value>) -> StoreFuture<'_, Vec<Row>>;

    /// Makes the tables of PostgreSQL. A file of SQLite has them since it was opened.
    #[cfg(feature = "postgres")]
    fn migrate<'a>(&'a self, _schema: &'a str) -> StoreFuture<'a, ()> {
        StoreFuture::ready(Ok(()))
    }
}

/// A value of a statement or of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<Option<i64>> for Value {
    fn from(int: Option<i64>) -> Self {
        Self::Int(int)
    }
}

impl From<i64> for Value {
    fn from(int: i64) -> Self {
        Self::Int(Some(int))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(Some(bytes))
    }
}

/// Writes `$first, …, $last`.
pub(crate) fn places(first: usize, count: usize) -> String {
    let places = (first..first + count).map(|number| format!("${number}"));
    places.collect::<Vec<_>>().join(", ")
}

/// A row. Its columns are taken in their order; here the last one comes first.
#[derive(Debug)]
pub struct Row(pub(crate) Vec<Value>);

impl Row {
    pub(crate) fn int_or_null(&mut self) -> Result<Option<i64>, StoreError> {
        match self.0.pop() {
            Some(Value::Int(int)) => Ok(int),
            other => null(other),
        }
    }

    pub(crate) fn text_or_null(&mut self) -> Result<Option<String>, StoreError> {
        match self.0.pop() {
            Some(Value::Text(text)) => Ok(text),
            other => null(other),
        }
    }

    pub(crate) fn bytes_or_null(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        match self.0.pop() {
            Some(Value::Bytes(bytes)) => Ok(bytes),
            other => null(other),
        }
    }

    pub(crate) fn int(&mut self) -> Result<i64, StoreError> {
        self.int_or_null()?.ok_or_else(damaged)
    }

    pub(crate) fn text(&mut self) -> Result<String, StoreError> {
        self.text_or_null()?.ok_or_else(damaged)
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, StoreError> {
        self.bytes_or_null()?.ok_or_else(damaged)
    }
}

/// A column that is null is of any type.
fn null<T>(value: Option<Value>) -> Result<Option<T>, StoreError> {
    match value {
        Some(Value::Int(None) | Value::Text(None) | Value::Bytes(None)) => Ok(None),
        _ => Err(damaged()),
    }
}

/// The error of a table that holds what was never written there.
pub(crate) fn damaged() -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt)
}
