//! The metrics of a reconciliation, and the alerts on them.

use std::process::Command;

#[test]
fn each_alert_fires_when_it_should_and_not_before() {
    for arguments in [
        ["check", "rules", "dashboards/reconcile.yml"],
        ["test", "rules", "tests/alerts_reconcile.yml"],
    ] {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let Ok(output) = Command::new("promtool")
            .current_dir(root)
            .args(arguments)
            .output()
        else {
            assert!(
                std::env::var_os("HOOKGATE_REQUIRE_TOOLS").is_none(),
                "promtool is missing"
            );
            println!("promtool is missing: the alerts are not checked");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "promtool {arguments:?}: {said}");
    }
}

/// A filling pass compares nothing, so the alert on passes that stopped must not be quiet for it.
#[cfg(feature = "metrics")]
// fault M17: a filling pass each day keeps the alert on passes quiet, though nothing is compared
#[test]
fn a_filling_pass_is_not_the_last_complete_pass_of_the_metrics() {
    use metrics_exporter_prometheus::PrometheusBuilder;

    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        hookgate::block_on(async {
            super::driver::filled(&super::driver::Source::with_rows(20)).await;
        });
    });
    let text = recorder.handle().render();
    assert!(!text.contains("_last_pass_timestamp_seconds{"), "{text}");
}

#[cfg(feature = "metrics")]
#[test]
fn the_page_and_the_alerts_name_the_metrics_that_are_emitted() {
    use hookgate::block_on;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::driver::{Source, filled, lose_three, quick, reconcile};

    const PAGE: &str = include_str!("../../../../../docs/reconciliation.md");
    const ALERTS: &str = include_str!("../../../../../dashboards/reconcile.yml");

    let recorder = PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || {
        block_on(async {
            let source = Source::with_rows(20);
            let mirror = filled(&source).await;
            lose_three(&source);
            let mut passes = reconcile(&source, mirror);
            for _ in 0..3 {
                passes.pass(quick).await.unwrap();
            }
        });
    });
    let text = recorder.handle().render();
    let finding = |kind: &str| {
        format!(
            r#"hookgate_reconcile_findings_total{{model="dm_orders",kind="{kind}",outcome="handled"}} 1"#
        )
    };
    for line in ["created", "updated", "deleted"].map(finding) {
        assert!(text.contains(&line), "{line}\n{text}");
    }
    assert!(
        text.contains(r#"hookgate_reconcile_unresolved_rows{model="dm_orders"} 0"#),
        "{text}"
    );
    let emitted: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .collect();
    assert_eq!(emitted.len(), 3, "{text}");
    for name in emitted {
        assert!(PAGE.contains(&format!("| `{name}` |")), "{name}");
        assert!(ALERTS.contains(name), "{name}");
    }
}
