//! Which packages cargo compiles, and which Rust they ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name and a version.
pub(crate) type Package = (String, String);

/// The folder of the workspace, whichever of its packages the tests are in.
pub(crate) fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders
        .find(|folder| folder.join("Cargo.lock").exists())
        .unwrap()
}

/// The output of cargo, without a network.
pub(crate) fn cargo(arguments: &[&str]) -> String {
    let locked = [arguments, &["--locked"]].concat();
    cargo_in(root(), &locked)
}

fn cargo_in(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(folder)
        .args(arguments)
        .arg("--offline")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Name and version of every package that these features compile, the workspace's own included.
pub(crate) fn tree(features: &[&str]) -> BTreeSet<Package> {
    tree_of("normal", features)
}

/// The same along these kinds of dependencies.
pub(crate) fn tree_of(edges: &str, features: &[&str]) -> BTreeSet<Package> {
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

/// The library, and these members of the workspace, without the rest of it. The metadata of a workspace asks for every member's
/// dependencies, and those of `examples/frameworks` are not there until it is built.
fn alone(members: &[&str]) -> PathBuf {
    let name = format!("alone-{}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src")).unwrap();
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    let of_members = |line: &str| {
        if line.starts_with("members = ") {
            format!("members = {members:?}")
        } else {
            line.to_owned()
        }
    };
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: Vec<_> = manifest.lines().map(of_members).collect();
    fs::write(folder.join("Cargo.toml"), manifest.join("\n")).unwrap();
    for member in members {
        fs::create_dir_all(folder.join(member).join("src")).unwrap();
        // A package needs a target: one has a program, another a library.
        for target in ["src/lib.rs", "src/main.rs"] {
            fs::write(folder.join(member).join(target), "").unwrap();
        }
        let manifest = Path::new(member).join("Cargo.toml");
        fs::copy(root().join(&manifest), folder.join(&manifest)).unwrap();
    }
    // Cargo takes the other members' packages out of it, and changes nothing else without a network.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

/// The `rust-version` of each of the library's packages, and of those of these members of the workspace.
pub(crate) fn rust_versions(members: &[&str]) -> BTreeMap<Package, (u32, u32)> {
    let about = Command::new(env!("CARGO")).arg("-vV").output().unwrap();
    let about = String::from_utf8(about.stdout).unwrap();
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let metadata = ["metadata", "--format-version=1", "--all-features"];
    let filter = ["--filter-platform", host.unwrap()];
    let folder = alone(members);
    let metadata = cargo_in(&folder, &[metadata.as_slice(), &filter].concat());
    fs::remove_dir_all(folder).unwrap();
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
}

/// A row of README's table of packages is true.
pub(crate) fn readme_counts(
    row: &str,
    features: &[&str],
    rust_versions: &BTreeMap<Package, (u32, u32)>,
) {
    counts(
        include_str!("../../README.md"),
        row,
        features,
        rust_versions,
    );
}

/// A row of a page's table of packages is true.
pub(crate) fn counts(
    page: &str,
    row: &str,
    features: &[&str],
    rust_versions: &BTreeMap<Package, (u32, u32)>,
) {
    let packages = tree(features);
    let newest = packages.iter().map(|package| rust_versions[package]).max();
    let (major, minor) = newest.unwrap();
    let end = format!("| {} | {major}.{minor} |", packages.len());
    let line = page
        .lines()
        .find(|line| line.starts_with(&format!("| {row} |")));
    let line = line.unwrap_or_else(|| panic!("no row for {row}"));
    assert!(line.ends_with(&end), "{line} should end in {end}");
}
