//! Without the feature `reconcile` no write is noted.

use super::{Rows, Values, Wire};
use crate::call::Before;
use crate::error::Error;

pub(super) struct Note;

impl<R> Rows<R> {
    pub(super) async fn note(&self, _: Option<&str>, _: &[Values]) -> Result<Note, Error> {
        Ok(Note)
    }
}

impl Note {
    pub(super) fn before(&self) -> Option<Before<'_>> {
        None
    }

    pub(super) async fn end(self, _: Result<&[Wire], &Error>) {}
}
