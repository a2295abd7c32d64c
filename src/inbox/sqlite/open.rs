//! Opens the file of an inbox.

use std::path::Path;

use rusqlite::Connection;

use super::options::InboxOptions;
use super::schema;
use crate::dedupe::{StoreError, StoreErrorKind};
use crate::sqlite::fault::failed;
use crate::sqlite::header;
use crate::sqlite::open::{self, Opened, connect, durably, flush_what_is_there, page_bytes, set};

/// The unit of [`InboxOptions::max_pages`].
const UNIT_BYTES: i64 = 4_096;

/// The connections of an inbox.
pub(super) struct Connections {
    pub(super) writer: Connection,
    pub(super) reader: Connection,
}

/// Opens the file, and creates the inbox in it if it has none.
pub(super) fn open(path: &Path, options: &InboxOptions) -> Result<Opened<Connections>, StoreError> {
    open::open(path, options.create, |file| open_file(file, options))
}

fn open_file(file: &Path, options: &InboxOptions) -> Result<Connections, StoreError> {
    let writer = connect(file, options.busy_timeout)?;
    let is_new = header::check(&writer, options.create)?;
    let has_inbox = !is_new && schema::exists(&writer).map_err(failed)?;
    if !has_inbox && !options.create {
        return Err(StoreError::saying(
            StoreErrorKind::Missing,
            "no receiver has made an inbox of this file: name the one that the receiver opens",
        ));
    }
    if let Some(pages) = options.max_pages {
        let pages = max_page_count(&writer, pages).map_err(failed)?;
        set(&writer, "max_page_count", pages).map_err(failed)?;
    }
    if !has_inbox || schema::is_older(&writer).map_err(failed)? {
        durably(&writer)?;
        schema::create(&writer).map_err(failed)?;
    }
    durably(&writer)?;
    flush_what_is_there(&writer)?;
    let reader = connect(file, options.busy_timeout)?;
    durably(&reader)?;
    reader
        .execute_batch("PRAGMA query_only = ON")
        .map_err(failed)?;
    Ok(Connections { writer, reader })
}

/// Returns the number of the file's pages in this number of pages of [`UNIT_BYTES`].
pub(super) fn max_page_count(connection: &Connection, pages: u32) -> rusqlite::Result<i64> {
    Ok((i64::from(pages) * UNIT_BYTES / page_bytes(connection)?).max(1))
}
