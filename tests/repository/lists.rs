//! The lists of promises and of the tests of the guarantees, `tests/promises.md` and
//! `tests/guarantees.md`, against the files and tests that exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Every Rust source below a folder of the repository, with its path.
pub(crate) fn each_source(folder: &str, see: &mut dyn FnMut(&str, &str)) {
    each_file(&Path::new(ROOT).join(folder), "rs", see);
}

/// Every file with this extension, but what is built or fetched. Git is not asked: a copy of the
/// repository without its history, or of another owner, is tested too.
pub(crate) fn each_file(folder: &Path, extension: &str, see: &mut dyn FnMut(&str, &str)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            let is_ours = !name.starts_with('.') || name == ".github";
            if is_ours && name != "target" && name != "node_modules" {
                each_file(&path, extension, see);
            }
        } else if path.extension().is_some_and(|it| it == extension) {
            see(
                &path.to_string_lossy().replace('\\', "/"),
                &fs::read_to_string(&path).unwrap(),
            );
        }
    }
}

/// The names of the packages' folders in `crates/`.
pub(crate) fn crates() -> Vec<String> {
    let folders = fs::read_dir(Path::new(ROOT).join("crates")).unwrap();
    let folders = folders.map(Result::unwrap);
    let packages = folders.filter(|folder| folder.path().join("Cargo.toml").exists());
    let mut names: Vec<_> = packages
        .map(|folder| folder.file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The names of all tests: functions that stand right below an attribute `test`.
pub(crate) fn tests() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for folder in ["src", "crates", "tests", "examples"] {
        each_source(folder, &mut |_, text| {
            let mut below_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    below_test = true;
                } else if let Some((_, rest)) = line.split_once("fn ")
                    && below_test
                {
                    names.extend(rest.split('(').next().map(str::to_owned));
                    below_test = false;
                }
            }
        });
    }
    names
}

#[test]
fn every_promise_names_files_and_tests_that_exist() {
    let root = Path::new(ROOT);
    let list = fs::read_to_string(root.join("tests/promises.md")).unwrap();
    let tests = tests();
    let mut promises = 0;
    for line in list.lines().filter(|line| line.starts_with("| **")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [_, kept_in, shown_by] = cells[..] else {
            panic!("three cells: {line}")
        };
        for cell in [kept_in, shown_by] {
            let names: Vec<_> = cell.split('`').skip(1).step_by(2).collect();
            assert!(!names.is_empty(), "{line}");
            // A bare file name stands in the folder that was named last.
            let mut folder = String::new();
            for name in names {
                let within = format!("{folder}{name}");
                let exists =
                    root.join(name).exists() || root.join(&within).exists() || tests.contains(name);
                assert!(exists, "there is no {name:?} in {folder:?}: {line}");
                if let Some((parent, _)) = name.rsplit_once('/') {
                    folder = format!("{parent}/");
                }
            }
        }
        promises += 1;
    }
    assert_eq!(promises, 10);
}

// fault S2-37: a crash between claim and commit
// fault S2-38: several processes, each with a memory of its own
#[test]
fn the_readme_says_what_is_not_promised() {
    let readme = include_str!("../../README.md").to_lowercase();
    for phrases in [
        ["at-least-once", "at least once"],
        ["per process", "one process"],
        ["whsec_", "whole secret"],
    ] {
        assert!(
            phrases.iter().any(|phrase| readme.contains(phrase)),
            "the README does not say {phrases:?}"
        );
    }
}

// fault S14: an open-ended dependency breaks by itself
#[test]
fn the_first_page_of_the_docs_shows_the_program_of_the_readme() {
    let (readme, page) = (
        include_str!("../../README.md"),
        include_str!("../../src/lib.rs"),
    );
    let (_, program) = readme.split_once("```rust,no_run\n").unwrap();
    let (program, _) = program.split_once("```").unwrap();
    let commented = program.lines().map(|line| format!("//! {line}"));
    let commented: String = commented
        .map(|line| line.trim_end().to_owned() + "\n")
        .collect();
    assert!(page.contains(&commented), "{commented}");
}

/// The text of a module's documentation: its `//!` lines and the page that it includes.
fn documentation(module: &str) -> String {
    let read = |path: &str| fs::read_to_string(Path::new(ROOT).join("src").join(path));
    let source = read(&format!("{module}.rs")).or_else(|_| read(&format!("{module}/mod.rs")));
    let mut text = String::new();
    for line in source.unwrap().lines() {
        if let Some(line) = line.strip_prefix("//!") {
            text += &format!("{}\n", line.strip_prefix(' ').unwrap_or(line));
        } else if let Some((_, page)) = line.split_once("include_str!(\"../")
            && line.starts_with("#![")
        {
            text += &read(page.split('"').next().unwrap()).unwrap();
        } else {
            return text;
        }
    }
    text
}

#[test]
fn each_module_begins_with_an_example_that_can_be_pasted() {
    let library = include_str!("../../src/lib.rs");
    let (public, _) = library.split_once("#[doc(hidden)]").unwrap();
    let modules = public
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod "));
    let modules: Vec<_> = modules.filter_map(|line| line.strip_suffix(';')).collect();
    assert!((10..=15).contains(&modules.len()), "{modules:?}");
    for module in modules.into_iter().filter(|&module| module != "guide") {
        let text = documentation(module);
        let (_, example) = text.split_once("```\n").unwrap();
        let (example, _) = example.split_once("\n```\n").unwrap();
        assert!(example.contains("assert"), "{module}");
        assert!(example.lines().count() <= 36, "{module}");
        // Without an end of its own type, `?` does not compile there. That line alone is hidden.
        let hidden: Vec<_> = example
            .lines()
            .filter(|line| line.starts_with("# "))
            .collect();
        let end = example.lines().next_back().unwrap();
        assert!(
            hidden.is_empty() || hidden == [end] && end.starts_with("# Ok::<"),
            "{module}: {hidden:?}"
        );
    }
}

#[test]
fn every_dependency_has_a_bounded_version() {
    let dependencies = |manifest: &str| {
        let manifest = fs::read_to_string(Path::new(ROOT).join(manifest)).unwrap();
        let section = manifest.split("[dependencies]").nth(1).unwrap();
        section.split("\n[").next().unwrap().to_owned()
    };
    let crates = crates().into_iter();
    let crates = crates.map(|name| dependencies(&format!("crates/{name}/Cargo.toml")));
    let sections = crates
        .chain([dependencies("Cargo.toml")])
        .collect::<Vec<_>>();
    let lines = sections.iter().flat_map(|section| section.lines());
    let mut seen = 0;
    for line in lines.filter(|line| line.contains(" = ")) {
        let (_, value) = line.split_once(" = ").unwrap();
        let version = value.split('"').nth(1).unwrap();
        // `0` or `*` would take the next breaking release by itself; so would `>=` without an upper
        // end.
        let bounded = match version.split_once(", <") {
            Some((_, end)) => end.starts_with("0.") && version.starts_with(">=0."),
            None => {
                !version.contains(['*', '>'])
                    && (version.starts_with("0.") || !version.starts_with('0'))
            }
        };
        assert!(bounded, "{line}");
        seen += 1;
    }
    assert!(seen > 40);
}

const GUARANTEES: &str = include_str!("../../docs/guarantees.md");
const TESTS_OF_GUARANTEES: &str = include_str!("../guarantees.md");

/// The heading above each row of a table of faults, and the first and the other cells of the row.
fn faults_in(page: &'static str) -> Vec<(&'static str, &'static str, &'static str)> {
    let mut heading = "";
    let mut in_table = false;
    let mut rows = Vec::new();
    for line in page.lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches('#').trim();
        }
        in_table = line.starts_with("| fault |") || (in_table && line.starts_with('|'));
        if let Some((fault, rest)) = line
            .strip_prefix("| ")
            .and_then(|row| row.split_once(" | "))
            && in_table
            && fault != "fault"
        {
            rows.push((heading, fault, rest));
        }
    }
    rows
}

#[test]
fn each_fault_of_the_guarantees_has_its_tests() {
    let promised = faults_in(GUARANTEES);
    let shown = faults_in(TESTS_OF_GUARANTEES);
    let names = |rows: &[(&'static str, &'static str, &str)]| -> Vec<_> {
        rows.iter()
            .map(|(heading, fault, _)| (*heading, *fault))
            .collect()
    };
    assert_eq!(names(&promised), names(&shown));
    assert!(shown.len() > 50, "{}", shown.len());
    for ((_, fault, promise), (_, _, tests)) in promised.into_iter().zip(shown) {
        let untested = fault.contains("(no test") || promise.contains("(no test");
        assert_eq!(tests.contains("no test"), untested, "{fault}");
        assert!(untested || tests.contains('_'), "{fault}");
    }
}

/// Names in back-quotes that look like a test: words joined by underscores.
fn named() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for line in TESTS_OF_GUARANTEES.lines() {
        let quoted = line.split('`').skip(1).step_by(2);
        names.extend(quoted.filter(|name| {
            let plain =
                |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '_';
            name.chars().all(plain) && name.matches('_').count() >= 2
        }));
    }
    names
}

#[test]
fn every_guarantee_names_tests_that_exist() {
    let tests = tests();
    let missing: Vec<_> = named()
        .into_iter()
        .filter(|name| !tests.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named().len() > 40, "{}", named().len());
}
