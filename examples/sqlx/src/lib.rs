//! hookgate with sqlx: the claim and the order of a row's events in a transaction of sqlx, so that
//! its effects happen exactly once, and no old event overwrites a new one.
//!
//! The statements and the bound values are hookgate's; sqlx runs them. It works in the same way
//! with diesel and SeaORM. `hookgate-sqlx` also builds hookgate's inbox beside sqlx's SQLite: both
//! link the C library, which may be linked only once.

use hookgate::dedupe::{ClaimValues, ClaimedIn};
use hookgate_order::{OrderedIn, RowValues};
use hookgate_postgres::{CLAIM_IN, LOCK_ROW, MIGRATIONS, WRITE_ROW};
use sqlx::{PgPool, Postgres, Row, Transaction};

/// Claims the event inside `transaction`.
///
/// # Errors
/// Those of sqlx. Roll the transaction back; where it [is a conflict](is_conflict), a retry finds
/// the outcome of the other one.
pub async fn claim_in(
    transaction: &mut Transaction<'_, Postgres>,
    values: &ClaimValues,
) -> sqlx::Result<ClaimedIn> {
    let mut same_body = None;
    // Where the other transaction has just ended, the next statement can read its body.
    for _ in 0..2 {
        let row = sqlx::query(CLAIM_IN)
            .bind(values.key())
            .bind(values.body())
            .bind(values.retain_micros())
            .fetch_one(&mut **transaction)
            .await?;
        match row.try_get("outcome")? {
            "fresh" => return Ok(ClaimedIn::Fresh),
            "held" => return Ok(ClaimedIn::Running),
            _ => same_body = row.try_get("same_body")?,
        }
        if same_body.is_some() {
            break;
        }
    }
    Ok(ClaimedIn::Duplicate {
        same_body: same_body.unwrap_or(false),
    })
}

/// Returns the place of the event among the handled events of its row, and records it inside
/// `transaction`. `values` are those of `RowValues::of`; an event without them is not about a row.
///
/// # Errors
/// Those of sqlx, as with [`claim_in`].
pub async fn order_in(
    transaction: &mut Transaction<'_, Postgres>,
    values: &RowValues,
) -> sqlx::Result<OrderedIn> {
    let row = sqlx::query(LOCK_ROW)
        .bind(values.key())
        .fetch_one(&mut **transaction)
        .await?;
    let ordered = values
        .judge(row.try_get("last")?)
        .map_err(|error| sqlx::Error::Decode(error.into()))?;
    if let Some(record) = ordered.record() {
        sqlx::query(WRITE_ROW)
            .bind(values.key())
            .bind(record)
            .bind(values.retain_micros())
            .execute(&mut **transaction)
            .await?;
    }
    Ok(ordered)
}

/// Returns whether another transaction was faster: answer 503, or begin again. A commit may fail in
/// the same way.
pub fn is_conflict(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    matches!(code.as_deref(), Some("40001" | "40P01"))
}

/// Makes hookgate's tables. A tool such as `sqlx migrate` can do it as well: use each step as the
/// content of a file.
///
/// # Errors
/// Those of sqlx.
pub async fn migrate(pool: &PgPool) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    // Processes that start together migrate one at a time, with the lock number of hookgate's own
    // `migrate`.
    sqlx::query("SELECT pg_advisory_xact_lock(7525356009446012005)")
        .execute(&mut *transaction)
        .await?;
    for step in MIGRATIONS {
        sqlx::raw_sql(step.sql).execute(&mut *transaction).await?;
    }
    transaction.commit().await
}
