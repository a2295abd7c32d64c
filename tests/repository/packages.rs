//! Which packages cargo compiles, and which Rust they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

use crate::lists::crates;

const PAGE: &str = include_str!("../../docs/packages.md");
const CONTRIBUTING: &str = include_str!("../../CONTRIBUTING.md");
const CLIENT: &str = include_str!("../../docs/client.md");

/// A name and a version.
type Package = (String, String);

/// The output of cargo.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .args(arguments)
        .arg("--locked")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Name and version of every package that these features compile, the workspace's own included.
fn tree(features: &[&str]) -> BTreeSet<Package> {
    tree_of("normal", features)
}

/// The same along these kinds of dependencies.
fn tree_of(edges: &str, features: &[&str]) -> BTreeSet<Package> {
    let tree = ["tree", "--edges", edges, "--prefix", "none"];
    cargo(&[&tree, features].concat())
        .lines()
        .map(|line| {
            let mut words = line.split(' ');
            let mut word = || words.next().unwrap().to_owned();
            (word(), word().trim_start_matches('v').to_owned())
        })
        .collect()
}

/// The `rust-version` of each package of the workspace and of its dependencies.
static RUST_VERSIONS: LazyLock<BTreeMap<Package, (u32, u32)>> = LazyLock::new(|| {
    let metadata = cargo(&["metadata", "--format-version=1", "--all-features"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let mut versions = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let rust = text("rust_version");
        let mut numbers = rust.split('.').map_while(|number| number.parse().ok());
        let rust = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        versions.insert((text("name"), text("version")), rust);
    }
    versions
});

/// A row of a page's table of packages is true.
fn counts(page: &str, row: &str, features: &[&str]) {
    let packages = tree(features);
    let newest = packages.iter().map(|package| RUST_VERSIONS[package]).max();
    let (major, minor) = newest.unwrap();
    let end = format!("| {} | {major}.{minor} |", packages.len());
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("| {row} |")));
    let line = line.unwrap_or_else(|| panic!("no row for {row}"));
    assert!(line.ends_with(&end), "{line} should end in {end}");
}

/// The page's rows and the matching arguments for cargo.
const ROWS: [(&str, &[&str]); 12] = [
    ("none", &["--no-default-features"]),
    ("`tower`", &["--no-default-features", "--features=tower"]),
    ("`axum`", &["--no-default-features", "--features=axum"]),
    ("`lookup`", &["--no-default-features", "--features=lookup"]),
    ("`moka`", &["--no-default-features", "--features=moka"]),
    (
        "`tracing`",
        &["--no-default-features", "--features=tracing"],
    ),
    (
        "`metrics`",
        &["--no-default-features", "--features=metrics"],
    ),
    ("`chrono`", &["--no-default-features", "--features=chrono"]),
    ("`jiff`", &["--no-default-features", "--features=jiff"]),
    ("`time`", &["--no-default-features", "--features=time"]),
    ("default", &[]),
    ("all", &["--all-features"]),
];

#[test]
fn the_page_counts_packages_right() {
    for (row, features) in ROWS {
        counts(PAGE, row, features);
    }
}

#[test]
fn the_page_counts_the_packages_of_the_tools_right() {
    for (row, package) in [
        ("the command", "hookgate-cli"),
        ("claims on Redis", "hookgate-redis"),
        ("order of a row's events", "hookgate-order"),
        ("PostgreSQL", "hookgate-postgres"),
        ("SQLite", "hookgate-sqlite"),
        ("the inbox", "hookgate-inbox"),
        ("the delivery log", "hookgate-record"),
        ("tools for tests", "hookgate-testing"),
        ("the service on your machine", "hookgate-emulator"),
        ("the service's API", "hookgate-client"),
    ] {
        counts(PAGE, row, &["-p", package]);
    }
}

#[test]
fn the_page_of_the_client_counts_packages_right() {
    for (row, features) in [
        ("none", "--features="),
        ("`hyper`", "--features=hyper"),
        ("`tls`", "--features=tls"),
        ("`ring`", "--features=ring"),
        ("`aws-lc-rs`", "--features=aws-lc-rs"),
        ("`reconcile`", "--features=reconcile"),
        ("`metrics`", "--features=metrics"),
        ("`sqlite`", "--features=sqlite"),
        ("`postgres`", "--features=postgres"),
        ("all", "--all-features"),
    ] {
        let arguments = ["-p", "hookgate-client", "--no-default-features", features];
        counts(CLIENT, row, &arguments);
    }
}

#[test]
fn packages_stay_few() {
    // One of them is `base64ct`: Standard Webhooks' secrets and signatures are base64, and a secret
    // is decoded in constant time.
    assert!(tree(&["--no-default-features"]).len() <= 32);
    assert!(tree(&[]).len() <= 54);
    assert!(tree(&["-p", "hookgate-cli"]).len() <= 112);
}

/// Where two are compiled, rustls' own `ClientConfig::builder()` panics in the user's program.
// fault T1: TLS to a store or to the service brings a provider of crypto with it: a program on another has two, and its own `ClientConfig::builder()` panics
#[test]
fn no_feature_but_its_own_brings_a_provider_of_crypto() {
    let of = |arguments: &[&str]| {
        let packages = tree(arguments).into_iter().map(|(name, _)| name);
        let providers = packages.filter(|name| name == "ring" || name == "aws-lc-rs");
        providers.collect::<Vec<_>>().join(" ")
    };
    for package in [
        ["-p", "hookgate-postgres", "--features=tls"],
        ["-p", "hookgate-redis", "--features=tls"],
        ["-p", "hookgate-client", "--features=postgres,sqlite"],
    ] {
        assert_eq!(of(&package), "");
        for provider in ["ring", "aws-lc-rs"] {
            let feature = format!("--features={provider}");
            assert_eq!(of(&[&package[..], &[&feature]].concat()), provider);
        }
    }
}

/// What `cargo run --example receiver -- --try` compiles in a fresh clone: the example's
/// dependencies are those of all examples.
#[test]
fn the_first_example_compiles_few_packages() {
    let packages = tree_of("normal,build,dev", &[]);
    assert!(packages.len() <= 75, "{}", packages.len());
    let told = format!("it compiles {} packages", packages.len());
    assert!(CONTRIBUTING.contains(&told), "{told}");
}

/// The packages that a test of this package compiles, dev-dependencies included, contain no other
/// framework.
#[test]
fn other_frameworks_stay_in_their_member() {
    let tree = ["tree", "--prefix=none", "--all-features"];
    for line in cargo(&tree).lines() {
        let foreign = ["actix", "lambda_", "poem", "rocket", "tonic"];
        let named = foreign.iter().any(|prefix| line.starts_with(prefix));
        assert!(!named, "{line}");
    }
    let plain = cargo(&["metadata", "--format-version=1", "--no-deps"]);
    let plain: serde_json::Value = serde_json::from_str(&plain).unwrap();
    let built = plain["workspace_default_members"].as_array().unwrap();
    assert_eq!(
        built.len(),
        1,
        "a plain `cargo test` builds this package alone"
    );
}

#[test]
fn core_knows_no_framework() {
    for (name, _) in tree(&["--no-default-features"]) {
        let foreign = ["http", "tokio", "tower", "axum", "hyper", "moka"];
        assert!(
            !foreign.iter().any(|prefix| name.starts_with(prefix)),
            "{name}"
        );
    }
}

#[test]
fn serde_json_is_not_changed_for_the_whole_program() {
    let format = [
        "tree",
        "--edges=normal",
        "--prefix=none",
        "--format={p} {f}",
    ];
    let tree = cargo(&[format.as_slice(), &["--all-features"]].concat());
    let line = tree.lines().find(|line| line.starts_with("serde_json "));
    let line = line.expect("serde_json with its features");
    assert!(line.contains("raw_value"), "{line}");
    assert!(!line.contains("arbitrary_precision") && !line.contains("preserve_order"));
}

#[test]
fn rust_version_is_that_of_the_neediest_dependency_or_newer() {
    let crates = crates().into_iter().map(|name| format!("hookgate-{name}"));
    for own in crates.chain(["hookgate".to_owned()]) {
        let packages = tree(&["-p", &own, "--all-features"]);
        let least = packages.iter().find(|(name, _)| *name == own);
        let least = RUST_VERSIONS[least.unwrap()];
        for package in &packages {
            let version = RUST_VERSIONS[package];
            assert!(version <= least, "{package:?} asks for {version:?}");
        }
    }
}

/// cargo-binstall looks for the archive, its folder and the binary under the names that
/// `scripts/dist` gives them.
#[test]
fn binstall_finds_what_dist_makes() {
    let dist = include_str!("../../scripts/dist");
    let manifest = include_str!("../../crates/cli/Cargo.toml");
    let template = |key: &str| {
        let start = format!("{key} = \"");
        let line = manifest.lines().find_map(|line| line.strip_prefix(&start));
        line.unwrap()
            .trim_end_matches('"')
            .replace("{ version }", "$version")
            .replace("{ target }", "$target")
            .replace("{ bin }{ binary-ext }", "hookgate")
    };
    let name = dist.lines().find_map(|line| line.strip_prefix("name="));
    let name = name.unwrap();
    assert_eq!(template("bin-dir"), format!("{name}/hookgate"));
    assert_eq!(
        template("pkg-url"),
        format!("{{ repo }}/releases/download/v$version/{name}.tar.gz")
    );
    assert_eq!(template("pkg-fmt"), "tgz");
    assert!(dist.contains("cp \"$folder/hookgate\"") && dist.contains("gzip -n >\"$name.tar.gz\""));
}
