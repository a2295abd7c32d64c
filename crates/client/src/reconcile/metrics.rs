//! The metrics of a reconciliation, through the facade crate `metrics`.

use std::time::{SystemTime, UNIX_EPOCH};

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};

use super::steps::Pass;

const FINDINGS: &str = "hookgate_reconcile_findings_total";
const UNRESOLVED: &str = "hookgate_reconcile_unresolved_rows";
const LAST_PASS: &str = "hookgate_reconcile_last_pass_timestamp_seconds";

pub(super) fn describe() {
    describe_counter!(
        FINDINGS,
        Unit::Count,
        "Rows that changed without a handled event, by kind and by the outcome of the finding."
    );
    describe_gauge!(
        UNRESOLVED,
        Unit::Count,
        "Rows of the last pass that differ for an unknown reason."
    );
    describe_gauge!(
        LAST_PASS,
        Unit::Seconds,
        "When the last complete pass that compared ended, in Unix time."
    );
}

/// `outcome`: `handled`, `elsewhere` or `failed`.
pub(super) fn finding(model: &str, kind: &'static str, outcome: &'static str) {
    counter!(FINDINGS, "model" => model.to_owned(), "kind" => kind, "outcome" => outcome)
        .increment(1);
}

/// A complete pass that compared.
#[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
pub(super) fn pass(model: &str, pass: &Pass) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    gauge!(LAST_PASS, "model" => model.to_owned()).set(now.as_secs_f64());
    gauge!(UNRESOLVED, "model" => model.to_owned()).set(pass.unresolved as f64);
}
