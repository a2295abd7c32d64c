//! The common parts of the benches: contestants that run in turn, and raw results that can be
//! recorded.
//!
//! A noisy machine slows the code that runs at the moment. So contestants take short turns, round
//! after round, and each is compared with the others in the same round: the results are ratios,
//! never times.

#![allow(dead_code, unreachable_pub)] // no bench uses all of it, and none has a public API
#![allow(clippy::expect_used, clippy::print_stdout)] // a bench prints, and panics on an unexpected result

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

pub type Contestant<'a> = (&'a str, Box<dyn FnMut() -> bool + 'a>);

/// The measurements of a contestant, round by round.
pub struct Series {
    pub name: String,
    /// Nanoseconds, requests a second or bytes: the unit depends on the bench.
    pub rounds: Vec<f64>,
}

/// Some contestants that were measured together. Ratios are relative to the first of them.
pub struct Case {
    pub name: String,
    pub series: Vec<Series>,
}

impl Case {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            series: Vec::new(),
        }
    }

    /// Adds to the series of this name.
    pub fn add(&mut self, name: &str, value: f64) {
        match self.series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.rounds.push(value),
            None => self.series.push(Series {
                name: name.into(),
                rounds: vec![value],
            }),
        }
    }

    fn rounds(&self, name: &str) -> &[f64] {
        let series = self.series.iter().find(|series| series.name == name);
        &series.unwrap_or_else(|| panic!("no series {name}")).rounds
    }

    /// Returns the median over the rounds of one series as a share of another.
    pub fn ratio(&self, name: &str, base: &str) -> f64 {
        let pairs = self.rounds(name).iter().zip(self.rounds(base));
        median(pairs.map(|(own, base)| own / base).collect())
    }

    /// Returns the highest share over the rounds.
    pub fn best_ratio(&self, name: &str, base: &str) -> f64 {
        let pairs = self.rounds(name).iter().zip(self.rounds(base));
        pairs.map(|(own, base)| own / base).fold(0.0, f64::max)
    }

    /// Returns the median of one series.
    pub fn median(&self, name: &str) -> f64 {
        median(self.rounds(name).to_vec())
    }
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs the contestants in turn, for about `turn` each, and records the nanoseconds of one call.
pub fn interleaved(
    case: &str,
    mut contestants: Vec<Contestant<'_>>,
    rounds: usize,
    turn: Duration,
) -> Case {
    let mut turns = Vec::new();
    for (name, run) in &mut contestants {
        assert!(run(), "{name} fails in {case}");
        let (start, mut count) = (Instant::now(), 0_u32);
        while start.elapsed() < 4 * turn {
            black_box(run());
            count += 1;
        }
        turns.push((count / 4).max(1));
    }
    let mut measured = Case::new(case);
    for _ in 0..rounds {
        for ((name, run), turn) in contestants.iter_mut().zip(&turns) {
            let start = Instant::now();
            for _ in 0..*turn {
                black_box(run());
            }
            let nanos = start.elapsed().as_secs_f64() * 1e9 / f64::from(*turn);
            measured.add(name, nanos);
        }
    }
    measured
}

/// The arguments of the command line.
pub struct Arguments(Vec<String>);

impl Arguments {
    pub fn read() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    pub fn has(&self, flag: &str) -> bool {
        self.0.iter().any(|argument| argument == flag)
    }

    /// Returns the argument after this one.
    pub fn after(&self, flag: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == flag)?;
        self.0.get(at + 1).map(String::as_str)
    }

    /// Returns the results in the file that `--record` names, if it exists: so a run can add its
    /// rounds to those of earlier runs.
    pub fn recorded(&self) -> Vec<Case> {
        let file = self.after("--record").map(from_the_root);
        let Some(text) = file.and_then(|file| std::fs::read_to_string(file).ok()) else {
            return Vec::new();
        };
        let record: serde_json::Value = serde_json::from_str(&text).expect("a record");
        let list = |value: &serde_json::Value| value.as_array().cloned().expect("a list");
        let name = |value: &serde_json::Value| value.as_str().expect("a name").to_owned();
        let read = |case: &serde_json::Value| Case {
            name: name(&case["case"]),
            series: list(&case["series"])
                .iter()
                .map(|series| Series {
                    name: name(&series["name"]),
                    rounds: list(&series["rounds"])
                        .iter()
                        .filter_map(serde_json::Value::as_f64)
                        .collect(),
                })
                .collect(),
        };
        list(&record["cases"]).iter().map(read).collect()
    }

    /// Writes the raw results to `FILE` where `--record FILE` is given.
    pub fn record(&self, bench: &str, unit: &str, cases: &[Case]) {
        let Some(file) = self.after("--record") else {
            return;
        };
        let cases: Vec<_> = cases
            .iter()
            .map(|case| {
                let series: Vec<_> = case
                    .series
                    .iter()
                    .map(|series| {
                        let rounds: Vec<_> = series.rounds.iter().map(|&v| short(v)).collect();
                        serde_json::json!({ "name": series.name, "rounds": rounds })
                    })
                    .collect();
                serde_json::json!({ "case": case.name, "series": series })
            })
            .collect();
        let record = BTreeMap::from([
            ("bench", serde_json::json!(bench)),
            ("cpu", serde_json::json!(cpu())),
            ("unit", serde_json::json!(unit)),
            ("cases", serde_json::json!(cases)),
        ]);
        let text = serde_json::to_string(&record).expect("plain values");
        // A line for each series, so that two records can be compared.
        let text = text.replace(r#"{"name""#, "\n{\"name\"") + "\n";
        let path = from_the_root(file);
        std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        println!("\nraw results: {}", path.display());
    }
}

/// Cargo runs a bench in the package's folder; a bench started directly may have any current
/// folder.
fn from_the_root(file: &str) -> std::path::PathBuf {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    root.join(file)
}

/// Returns four digits, which is more than the precision of any measurement here.
fn short(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

pub fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    name.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':']))
        .to_owned()
}

pub fn sha_extensions() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("sha");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}
