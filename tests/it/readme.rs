//! README's shell lines, run as they stand, and its printed answers, looked for as they stand.

#![cfg(all(feature = "axum", feature = "moka"))]

use std::io::Write;
use std::process::{Command, Stdio};

use crate::process::{Example, tools_are_there};

const README: &str = include_str!("../../README.md");
const FIRST: &str = "cargo run --example receiver\n";

/// The fenced blocks of a language, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = README.split(opening.as_str()).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_shell_lines_do_what_readme_says() {
    if !tools_are_there(&["bash", "openssl", "curl"], "the shell lines of README") {
        return;
    }
    let shell = blocks("sh");
    let (first, rest) = shell.split_first().unwrap();
    assert_eq!(*first, FIRST);
    let (last, deliveries) = rest.split_last().unwrap();
    assert_eq!(*last, "./scripts/test\n");

    // Without a secret of its own, as in the first line; on a port that is free.
    let mut receiver = Example::start("receiver", &[]);
    let script = deliveries.concat();
    let mut bash = Command::new("bash")
        .args(["-s"])
        .env("ADDR", &receiver.address)
        .env_remove("WEBHOOK_SECRET")
        .envs([("no_proxy", "*"), ("NO_PROXY", "*")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = bash.stdin.take().unwrap();
    stdin
        .write_all(format!("set -eu\n{script}").as_bytes())
        .unwrap();
    drop(stdin);
    let output = bash.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap().replace('\r', "");
    assert!(output.status.success(), "{answers}");

    let statuses: Vec<_> = answers
        .match_indices("HTTP/1.1 ")
        .map(|(at, prefix)| &answers[at + prefix.len()..][..3])
        .collect();
    assert_eq!(statuses, ["204", "204", "204", "200", "401", "401"]);
    for promised in blocks("text").iter().flat_map(|block| block.lines()) {
        if !answers.contains(promised) {
            receiver.line_with(promised);
        }
    }
    receiver.line_with("the delivery is stale");
    // Three runs, whatever was delivered.
    assert_eq!(receiver.count_lines_with("row_1"), 3);
}
