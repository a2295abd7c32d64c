//! The example `prometheus`, its metrics, and whether documentation, alerts and dashboard use
//! exactly those.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::process::{Example, Reply, own_secret, row_created, signed, tools_are_there};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const ALERTS: &str = include_str!("../../dashboards/alerts.yml");
const ALERT_TESTS: &str = include_str!("../alerts.yml");
const DASHBOARD: &str = include_str!("../../dashboards/hookgate.json");
const DOCS: &str = include_str!("../../docs/operations.md");
const RECONCILIATION: &str = include_str!("../../docs/reconciliation.md");
const RUNBOOK: &str = include_str!("../../docs/runbook.md");

/// Labels that Prometheus adds, and the label of histograms.
const ADDED: [&str; 3] = ["instance", "job", "le"];

/// The example after a little of everything, and the text that it serves.
fn scrape() -> String {
    let variables = [
        ("WEBHOOK_SECRET", own_secret()),
        ("OPERATIONS_ADDR", "127.0.0.1:0"),
        ("STORE_CAPACITY", "2"),
    ];
    let mut example = Example::start("prometheus", &variables);
    let line = example.line_with("metrics on http://");
    let operations = line.trim_start_matches("metrics on http://");
    let operations = operations.trim_end_matches("/metrics").to_owned();
    let get = |path| Reply::to(&operations, "GET", path, &[], "");

    let ready = get("/ready");
    assert_eq!((ready.status, &*ready.body), (200, "ready"));
    // An idle receiver has metrics too, its start time included.
    let idle = get("/metrics").body;
    assert!(
        idle.contains("\nhookgate_started_timestamp_seconds{receiver=\"orders\"} "),
        "{idle}"
    );
    assert!(!idle.contains("hookgate_last_accepted"), "{idle}");

    // Five events where two are remembered, a copy, a mismatch, and a request that is not a
    // delivery.
    let customer = r#"{"Customer":"Ada"}"#;
    for (id, properties, status) in [
        ("evt_1", customer, 204),
        ("evt_1", customer, 200),
        ("evt_2", customer, 204),
        ("evt_3", customer, 204),
        ("evt_4", customer, 204),
        ("evt_5", "{}", 422),
    ] {
        let reply = example.deliver(own_secret(), &row_created(id, properties));
        assert_eq!(reply.status, status, "{id}");
    }
    let stale = row_created("evt_6", customer);
    let stale = example.send(
        "POST",
        "/webhooks",
        &signed(own_secret(), &stale, 400),
        &stale,
    );
    assert_eq!(stale.status, 401);
    assert_eq!(example.get("/webhooks").status, 405);
    // None of this is served on the senders' port.
    assert_eq!(example.get("/metrics").status, 404);
    let scraped = get("/metrics").body;
    #[cfg(unix)]
    {
        let held = example.held_open(own_secret());
        assert!(example.terminate(), "ends well when it is told to");
        example.line_with("stopped, 0 runs aborted");
        drop(held);
    }
    scraped
}

/// A metric as the exporter writes it: its type, and the names of its labels but `receiver`.
#[derive(Debug, Default, PartialEq)]
struct Metric {
    kind: String,
    labels: BTreeSet<String>,
}

fn metrics(scraped: &str) -> BTreeMap<String, Metric> {
    let mut metrics: BTreeMap<String, Metric> = BTreeMap::new();
    for line in scraped.lines() {
        if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').unwrap();
            metrics.entry(name.into()).or_default().kind = kind.into();
        }
    }
    for (name, matchers) in selectors(scraped) {
        let Some(metric) = metrics.get_mut(family(&metrics, &name)) else {
            continue; // in a line of help
        };
        let labels = matchers.into_iter().map(|(label, ..)| label);
        metric
            .labels
            .extend(labels.filter(|label| label != "le" && label != "receiver"));
    }
    metrics
}

/// The metric that a name belongs to: itself, or the histogram of which it is a part.
fn family<'n, V>(metrics: &BTreeMap<String, V>, name: &'n str) -> &'n str {
    let parts = ["_bucket", "_sum", "_count"];
    let base = parts.iter().find_map(|part| name.strip_suffix(part));
    base.filter(|base| metrics.contains_key(*base))
        .unwrap_or(name)
}

type Matcher = (String, &'static str, String);

/// Each name of ours in a text, with the labels that follow it in braces: label, operator, value.
fn selectors(text: &str) -> Vec<(String, Vec<Matcher>)> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in text.match_indices("hookgate_") {
        if text[..at].ends_with(word) {
            continue;
        }
        let end = text[at..]
            .find(|c| !word(c))
            .map_or(text.len(), |end| at + end);
        let matchers = text[end..].strip_prefix('{').map_or_else(Vec::new, |rest| {
            let inside = rest.split('}').next().unwrap();
            inside.split(',').map(matcher).collect()
        });
        found.push((text[at..end].to_owned(), matchers));
    }
    found
}

fn matcher(text: &str) -> Matcher {
    let operator = ["!~", "=~", "!=", "="]
        .into_iter()
        .find(|operator| text.contains(operator));
    let operator = operator.unwrap_or_else(|| panic!("no operator in {text:?}"));
    let (label, value) = text.split_once(operator).unwrap();
    (
        label.trim().into(),
        operator,
        value.trim().trim_matches('"').into(),
    )
}

/// The labels of all `by (…)` and `on (…)`.
fn grouped_by(text: &str) -> BTreeSet<String> {
    let lists = ["by (", "on ("]
        .iter()
        .flat_map(|word| text.split(word).skip(1));
    let labels = lists.flat_map(|rest| rest.split(')').next().unwrap().split(','));
    labels.map(|label| label.trim().to_owned()).collect()
}

/// The expressions of the dashboard's panels.
fn dashboard_expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten();
    let expressions: Vec<_> = targets
        .map(|target| target["expr"].as_str().unwrap().to_owned())
        .collect();
    assert!(expressions.len() > 20);
    expressions
}

/// The expressions of the alerts, by their names.
fn alert_expressions() -> Vec<(&'static str, &'static str)> {
    let alerts = ALERTS.split("- alert: ").skip(1).map(|alert| {
        let (name, rest) = alert.split_once('\n').unwrap();
        let expression = rest.split("expr: |").nth(1).unwrap();
        let end = ["for:", "labels:"]
            .iter()
            .filter_map(|key| expression.find(key))
            .min();
        (name, &expression[..end.unwrap()])
    });
    alerts.collect()
}

/// The metrics of the tables in the docs.
fn documented() -> BTreeMap<String, Metric> {
    let table = DOCS.lines().filter(|line| line.starts_with("| `hookgate_"));
    table
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let labels = cells[3]
                .split(',')
                .map(|label| label.trim().trim_matches('`'));
            let metric = Metric {
                kind: cells[2].into(),
                labels: labels
                    .filter(|label| !label.is_empty())
                    .map(Into::into)
                    .collect(),
            };
            (cells[1].trim_matches('`').to_owned(), metric)
        })
        .collect()
}

/// The metrics of a secret provider, of an inbox and of an order guard, which the example does not
/// have: their docs are compared with the served metrics in
/// `metrics::what_is_looked_up_is_counted_as_the_docs_say`,
/// `metrics::what_an_inbox_does_is_counted_as_the_docs_say` and
/// `metrics::what_an_order_guard_sees_is_counted_as_the_docs_say`.
fn is_apart(name: &str) -> bool {
    ["hookgate_lookups_", "hookgate_inbox_", "hookgate_order_"]
        .iter()
        .any(|apart| name.starts_with(apart))
}

#[test]
fn what_is_served_is_what_the_docs_say() {
    let served = metrics(&scrape());
    let mut documented = documented();
    documented.retain(|name, _| !is_apart(name));
    assert_eq!(documented, served);
    assert!(served.len() >= 25);
}

#[test]
fn alerts_and_dashboard_ask_for_what_is_served() {
    let mut served = metrics(&scrape());
    served.extend(documented().into_iter().filter(|(name, _)| is_apart(name)));
    let dashboard = dashboard_expressions();
    let alerts = alert_expressions()
        .into_iter()
        .map(|(_, expression)| expression);
    let mut used = BTreeSet::new();
    let of_receiver = dashboard.iter().map(String::as_str);
    let of_receiver = of_receiver.filter(|expression| !expression.contains("hookgate_reconcile_"));
    for expression in of_receiver.chain(alerts) {
        let mut known: BTreeSet<_> = ADDED
            .iter()
            .chain(&["receiver"])
            .map(|&label| label.to_owned())
            .collect();
        let selectors = selectors(expression);
        assert!(!selectors.is_empty(), "{expression}");
        for (name, matchers) in selectors {
            let family = family(&served, &name);
            let metric = served
                .get(family)
                .unwrap_or_else(|| panic!("{name} is never served"));
            // A histogram has no samples by its own name.
            assert_eq!(name != family, metric.kind == "histogram", "{name}");
            used.insert(family.to_owned());
            known.extend(metric.labels.iter().cloned());
            for (label, _, value) in matchers {
                let given = value.starts_with('$');
                assert!(
                    metric.labels.contains(&label)
                        || label == "receiver"
                        || (given && label == "job"),
                    "{name} has no label {label}"
                );
                for value in value.split('|').filter(|_| !given) {
                    let documented = format!("`{value}`");
                    assert!(
                        DOCS.contains(&documented) || RUNBOOK.contains(&documented),
                        "no {label} is {value}"
                    );
                }
            }
        }
        let grouped = grouped_by(expression);
        assert!(grouped.is_subset(&known), "{grouped:?} in {expression}");
    }
    // Every served metric is used somewhere, except the gauge whose reasons say the same in more
    // detail.
    let unused: Vec<_> = served.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

// fault F25: a column is renamed, and the first alert is that of the fifth attempt; a counter that was not scraped for a while counts as new, and pages
// fault F35: a new subscription whose secret is wrong is seen by no alert while others work
#[test]
fn every_alert_has_its_runbook_and_tests_both_ways() {
    let alerts = alert_expressions();
    assert!(alerts.len() >= 5);
    for (name, _) in &alerts {
        let anchor = name.to_lowercase();
        assert!(
            ALERTS.contains(&format!("runbook: docs/runbook.md#{anchor}\n")),
            "{name}"
        );
        let section = RUNBOOK.split(&format!("\n### {name}\n")).nth(1);
        let section = section.unwrap_or_else(|| panic!("no section {name}"));
        let section = section.split("\n#").next().unwrap();
        for part in ["**It means**", "**Look at**", "**Do**"] {
            assert!(
                section.contains(part) || section.contains("| Do |"),
                "{name}: {part}"
            );
        }
        let expectation = format!("- alertname: {name}\n");
        let tests = ALERT_TESTS.split(&expectation).skip(1);
        let fires = tests.map(|rest| {
            let next = ["- alertname:", "- name:"]
                .iter()
                .filter_map(|end| rest.find(end))
                .min();
            rest[..next.unwrap_or(rest.len())].contains("exp_alerts:")
        });
        let fires: Vec<_> = fires.collect();
        assert!(fires.contains(&true), "{name} is never made to fire");
        assert!(fires.contains(&false), "{name} is never kept from firing");
    }
}

#[test]
fn every_reason_to_refuse_has_its_line_in_the_runbook() {
    // The first text of each arm is its name.
    let names = |source: &'static str, function: &str| {
        let (_, body) = source.split_once(function).unwrap();
        let (body, _) = body.split_once("\n    }\n").unwrap();
        let arms = body.lines().filter_map(|arm| arm.split('"').nth(1));
        arms.collect::<Vec<_>>()
    };
    let refusals = include_str!("../../src/outcome/refusal.rs");
    let refusals = names(
        refusals,
        "fn row(self) -> (u16, &'static str, &'static str) {",
    );
    let verify = include_str!("../../src/scheme/verify_error.rs");
    let verify = names(verify, "fn name(self) -> &'static str {");
    assert!(refusals.len() > 15 && verify.len() > 5);
    for name in refusals.into_iter().chain(verify) {
        // Reported as one of the reasons below it.
        if name != "not_authentic" {
            assert!(RUNBOOK.contains(&format!("`{name}`")), "{name}");
        }
    }
}

/// Of outcomes: the outcomes of a run are a part of the outcomes of an answer, and a receiver
/// either handles or accepts.
#[test]
fn the_series_are_computed_right() {
    let row = DOCS.lines().find(|line| line.starts_with("| `outcome` |"));
    let all: BTreeSet<_> = row.unwrap().split('`').skip(3).step_by(2).collect();
    // The row names two that are no outcomes as well.
    let without = |names: &[&str]| {
        let others = ["AlreadyHandled", "Acceptor"];
        all.iter()
            .filter(|name| !others.contains(*name) && !names.contains(*name))
            .count()
    };
    let layer = without(&["accepted"]);
    let runs = without(&["accepted", "refused", "runs_on", "hung_up"]);
    let acceptor = without(&["handled", "unhandled", "dead_lettered"]);
    let calls = without(&[
        "handled",
        "unhandled",
        "dead_lettered",
        "runs_on",
        "hung_up",
    ]);
    let histogram = hookgate::layer::DURATION_BUCKETS.len() + 3;
    for (number, computed) in [
        ("901", (layer + runs * 9) * histogram),
        ("714", (acceptor + calls * 9) * histogram),
        ("765", runs * 9 * histogram),
    ] {
        assert_eq!(number, computed.to_string());
        assert!(DOCS.contains(number), "{number}");
    }
}

/// The docs name the versions that the example is built and tested with.
/// With the outcomes that the log shows for it.
#[test]
fn what_was_lost_is_delivered_again_by_a_command_that_the_runbook_names() {
    let section = RUNBOOK
        .split_once("\n### HookgateLastAttemptsFailing")
        .map_or("", |(_, rest)| rest);
    let section = section.split("\n### ").next().unwrap_or_default();
    let command =
        "hookgate replay LOG --outcome type_mismatch --outcome handler_status --to https://";
    assert!(section.contains(command), "{section}");
    assert!(!section.contains("by hand"), "{section}");
}

#[test]
fn the_exporter_is_named_with_its_version() {
    let manifest = include_str!("../../examples/more/Cargo.toml");
    let line = manifest
        .lines()
        .find(|line| line.starts_with("metrics-exporter-prometheus = "));
    assert!(DOCS.contains(&format!("`{}`", line.unwrap())));
    let library = include_str!("../../Cargo.toml");
    let line = library.lines().find(|line| line.starts_with("metrics = {"));
    let version = line.unwrap().split('"').nth(1).unwrap();
    let version = version.rsplit_once('.').unwrap().0;
    assert!(DOCS.contains(&format!("facade, version {version};")));
}

#[test]
fn the_docs_lead_somewhere() {
    let root = Path::new(ROOT);
    for page in [DOCS, RUNBOOK] {
        let links = page.split("](").skip(1);
        for link in links.map(|rest| rest.split(')').next().unwrap()) {
            if let Some(anchor) = link.strip_prefix('#') {
                let headings = page.lines().filter(|line| line.starts_with('#'));
                let mut anchors = headings.map(|line| {
                    let heading = line.trim_start_matches('#').trim().to_lowercase();
                    heading.replace(' ', "-")
                });
                assert!(anchors.any(|other| other == anchor), "{link}");
            } else if !link.starts_with("https://") {
                assert!(root.join("docs").join(link).exists(), "{link}");
            }
        }
    }
}

/// Runs `promtool` and fails with its output where it reports a problem.
fn promtool(arguments: &[&str], stdin: &str) {
    let mut promtool = Command::new("promtool")
        .current_dir(ROOT)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = promtool.stdin.take().unwrap();
    // One that reads no input may have ended already.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "promtool {arguments:?}: {said}");
}

// fault F25: a column is renamed, and the first alert is that of the fifth attempt; a counter that was not scraped for a while counts as new, and pages
// fault F35: a new subscription whose secret is wrong is seen by no alert while others work
#[test]
fn each_alert_fires_when_it_should_and_not_before() {
    if !tools_are_there(&["promtool"], "the alerts for Prometheus") {
        return;
    }
    promtool(&["check", "rules", "dashboards/alerts.yml"], "");
    for tests in ["tests/alerts.yml", "tests/alerts_week.yml"] {
        promtool(&["test", "rules", tests], "");
    }
}

#[test]
fn panels_have_ids_of_their_own_and_places_of_their_own() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    let (mut ids, mut squares) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "twice: {panel}");
        let number = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        for x in number("x")..number("x") + number("w") {
            for y in number("y")..number("y") + number("h") {
                assert!(x < 24 && squares.insert((x, y)), "over another: {panel}");
            }
        }
    }
}

/// Those of the receiver are compared with what it serves:
/// `alerts_and_dashboard_ask_for_what_is_served`.
#[test]
fn the_dashboard_shows_each_metric_of_a_reconciliation() {
    let documented: BTreeMap<_, _> = RECONCILIATION
        .lines()
        .filter(|line| line.starts_with("| `hookgate_reconcile_"))
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            (cells[1].trim_matches('`'), cells[2])
        })
        .collect();
    assert_eq!(documented.len(), 3);
    let mut shown = BTreeSet::new();
    for expression in dashboard_expressions() {
        for (name, matchers) in selectors(&expression) {
            let Some((name, labels)) = documented.get_key_value(&*name) else {
                assert!(!name.starts_with("hookgate_reconcile_"), "{name}");
                continue;
            };
            shown.insert(*name);
            let has = |label: &str| label == "job" || labels.contains(&format!("`{label}`"));
            assert!(
                matchers.iter().all(|(label, ..)| has(label)),
                "{expression}"
            );
            let grouped = grouped_by(&expression);
            assert!(grouped.iter().all(|label| has(label)), "{expression}");
        }
    }
    assert_eq!(shown, documented.into_keys().collect());
}

#[test]
fn prometheus_understands_the_dashboard_and_what_is_served() {
    if !tools_are_there(
        &["promtool"],
        "the dashboard's expressions, and the metrics' names",
    ) {
        return;
    }
    // Each expression as a rule, with a value for each variable of Grafana.
    let mut rules = "groups:\n  - name: dashboard\n    rules:\n".to_owned();
    for (number, expression) in dashboard_expressions().iter().enumerate() {
        let expression = expression.replace("$__rate_interval", "5m");
        let expression = expression.replace("$job", ".*").replace("$receiver", ".*");
        assert!(!expression.contains('$'), "{expression}");
        let expression = Value::String(expression);
        rules += &format!("      - record: panel_{number}\n        expr: {expression}\n");
    }
    let name = format!("dashboard-{}.yml", std::process::id());
    let file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&file, rules).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");
    std::fs::remove_file(file).unwrap();
    // Its linter: units, suffixes, help texts.
    promtool(&["check", "metrics"], &scrape());
}
