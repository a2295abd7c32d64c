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

/// The table of commands names those that are there.
#[cfg(feature = "cli")]
#[test]
fn the_workbench_lists_every_command() {
    let help = Command::new(env!("CARGO_BIN_EXE_hookgate"))
        .arg("--help")
        .output()
        .unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let commands = help.split("Commands:\n").nth(1).unwrap();
    let commands = commands.split("\n\n").next().unwrap().lines();
    let mut there: Vec<_> = commands
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| !["help", "completions"].contains(name))
        .collect();
    there.sort_unstable();

    let section = README.split("\n## Workbench\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let cells = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = cells.filter_map(|line| line.split(" | ").next());
    let mut listed = Vec::new();
    for cell in cells {
        let names = cell.trim_start_matches("hookgate ").split("`, `");
        let mut names = names.filter_map(|name| name.split([' ', '`']).next());
        let first = names.next().unwrap();
        listed.push(first);
        // Behind these two stand the commands below them.
        listed.extend(names.filter(|_| !["log", "inbox"].contains(&first)));
    }
    listed.sort_unstable();
    assert_eq!(listed, there);
}
