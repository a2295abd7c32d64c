//! The parts that statements on the table share.

/// The columns that are read to list an entry.
pub(super) const LISTED: &str = "id, event_id, event_type, scope, state, tries, last_error,
  octet_length(body)::bigint AS body_bytes,
  (extract(epoch FROM accepted_at) * 1000)::bigint AS accepted_ms,
  (extract(epoch FROM CASE state WHEN 2 THEN forget_at ELSE due_at END) * 1000)::bigint AS until_ms";

/// The further columns that are read to handle an entry.
pub(super) const ENTRY: &str = "key, row_key, digest, received_at, signed_at, key_name, subscription, workspace, body, traceparent";

/// A part of a statement whose transaction is flushed before it is answered, even if the server or the role has switched that
/// off. Stricter settings stay, and `local` stays too.
macro_rules! durable {
    () => {
        "durable AS MATERIALIZED (
  SELECT CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', true)
    ELSE current_setting('synchronous_commit') END AS setting
)"
    };
}
pub(super) use durable;
