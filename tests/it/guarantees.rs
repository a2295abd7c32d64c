//! `docs/guarantees.md` against the tests that exist, and its sizes against their formula.

use std::collections::BTreeSet;

use crate::faults;

const PAGE: &str = include_str!("../../docs/guarantees.md");

/// Names in back-quotes that look like a test: words joined by underscores.
fn named() -> BTreeSet<&'static str> {
    let mut inside = false;
    let mut names = BTreeSet::new();
    for line in PAGE.lines() {
        // Code has names of its own.
        if line.starts_with("```") {
            inside = !inside;
        }
        if inside {
            continue;
        }
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
    let tests = faults::tests();
    let missing: Vec<_> = named()
        .into_iter()
        .filter(|name| !tests.contains(*name))
        .collect();
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(named().len() > 40, "{}", named().len());
}

#[test]
fn the_sizes_follow_from_their_formula() {
    const RETENTION: f64 = 172_800.0;
    let rows: Vec<Vec<&str>> = PAGE
        .lines()
        .skip_while(|line| !line.starts_with("## Sizes"))
        .filter(|line| line.starts_with("| ") && line.ends_with("GB |"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let bytes: f64 = row[1].parse().unwrap();
        for (cell, rate) in row[2..].iter().zip([1.0, 100.0, 10_000.0]) {
            let (number, unit) = cell.split_once(' ').unwrap();
            let said = number.parse::<f64>().unwrap() * if unit == "MB" { 1e6 } else { 1e9 };
            let computed = bytes * RETENTION * rate;
            assert!((said / computed - 1.0).abs() < 0.02, "{row:?}: {computed}");
        }
        let constant = match row[0].split('`').nth(1) {
            Some("MemoryStore") => Some(hookgate::MemoryStore::BYTES_PER_RECORD),
            #[cfg(feature = "moka")]
            Some("MokaStore") => Some(hookgate::MokaStore::BYTES_PER_RECORD),
            #[cfg(feature = "redis")]
            Some("RedisStore") => Some(hookgate::redis::BYTES_PER_RECORD),
            _ => None,
        };
        if let Some(constant) = constant {
            assert_eq!(constant.to_string(), row[1], "{row:?}");
        }
    }
}
