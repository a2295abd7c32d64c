//! The shell lines of README and `docs/try-it.md`, run as they stand, and the printed answers, looked for as they stand.

#![cfg(all(feature = "axum", feature = "moka"))]

use std::io::Write;
use std::process::{Command, Stdio};

use crate::process::{Example, tools_are_there};

const README: &str = include_str!("../../README.md");
const TRY_IT: &str = include_str!("../../docs/try-it.md");
const FIRST: &str = "cargo run --example receiver\n";

/// The fenced blocks of a language in a page, in order.
fn blocks(page: &'static str, language: &str) -> Vec<&'static str> {
    let opening = format!("```{language}\n");
    let blocks = page.split(opening.as_str()).skip(1);
    blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect()
}

#[test]
fn the_shell_lines_do_as_the_docs_say() {
    assert_eq!(blocks(README, "sh"), [FIRST, "./scripts/test\n"]);
    if !tools_are_there(&["bash", "openssl", "curl"], "the shell lines of the docs") {
        return;
    }
    let deliveries = blocks(TRY_IT, "sh");
    assert!(TRY_IT.contains(FIRST.trim_end()));

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
    for promised in blocks(TRY_IT, "text")
        .iter()
        .flat_map(|block| block.lines())
    {
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

    let page = include_str!("../../docs/command.md");
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `"));
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

#[test]
fn readme_is_one_screen_and_its_links_lead_to_files() {
    assert!(README.len() <= 9_216, "{} bytes", README.len());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for page in ["README.md", "CONTRIBUTING.md", "examples/README.md"] {
        let text = std::fs::read_to_string(root.join(page)).unwrap();
        let folder = root.join(page).parent().unwrap().to_owned();
        let links = text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let file = link.split('#').next().unwrap();
            assert!(folder.join(file).exists(), "{page} links to {link}");
        }
    }
}
