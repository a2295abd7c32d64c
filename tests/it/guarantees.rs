//! The sizes of `docs/guarantees.md` against their formula and the constants of the stores.

const PAGE: &str = include_str!("../../docs/guarantees.md");

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
            Some("MokaStore") => Some(hookgate::dedupe::MokaStore::BYTES_PER_RECORD),
            #[cfg(feature = "redis")]
            Some("RedisStore") => Some(hookgate_redis::BYTES_PER_RECORD),
            _ => None,
        };
        if let Some(constant) = constant {
            assert_eq!(constant.to_string(), row[1], "{row:?}");
        }
    }
}
