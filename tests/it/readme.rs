//! The shell lines of README and `docs/try-it.md`, run unchanged, and the printed answers, searched
//! unchanged. README's program and those of `docs/own-server.md`, pasted into a new crate.

#![cfg(feature = "axum")]

use std::io::Write;
use std::process::{Command, Stdio};

use crate::process::{Example, tools_are_there};

const README: &str = include_str!("../../README.md");
const TRY_IT: &str = include_str!("../../docs/try-it.md");
const OWN_SERVER: &str = include_str!("../../docs/own-server.md");
const FIRST: &str = "cargo run --example receiver -- --try\n";

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

    // As in the first line, on a port that is free.
    let mut receiver = Example::start_with("receiver", &["--try"], &[]);
    receiver.line_with(
        "the secret is whsec_made_up_for_local_tries, which is published: anyone can sign with it",
    );
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

#[test]
fn readme_is_one_screen_and_its_links_lead_to_files() {
    assert!(README.len() <= 9_216, "{} bytes", README.len());
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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

/// As a new user does it, in a folder outside the repository: README's dependencies and program,
/// and the programs of an own server.
#[test]
fn the_first_programs_compile_in_a_new_crate() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = root.canonicalize().unwrap();
    let crate_of_a_user = std::env::temp_dir().join(format!("hookgate-new-{}", std::process::id()));
    std::fs::create_dir_all(crate_of_a_user.join("src/bin")).unwrap();
    let write = |file: &str, text: &str| {
        std::fs::write(crate_of_a_user.join(file), text).unwrap();
    };

    let [dependencies] = blocks(README, "toml")[..] else {
        panic!("one list of dependencies")
    };
    let place = format!("path = {:?}", root.to_str().unwrap());
    assert!(dependencies.contains(r#"path = "../hookgate""#));
    let dependencies = dependencies.replace(r#"path = "../hookgate""#, &place);
    write(
        "Cargo.toml",
        &format!(
            "[package]\nname = \"new\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n{dependencies}"
        ),
    );
    // The versions that are compiled already, so that nothing is fetched.
    std::fs::copy(root.join("Cargo.lock"), crate_of_a_user.join("Cargo.lock")).unwrap();
    write("src/main.rs", blocks(README, "rust,no_run")[0]);
    let [verified, received] = blocks(OWN_SERVER, "rust")[..] else {
        panic!("two programs")
    };
    for (program, block) in [("verify_only", verified), ("own_server", received)] {
        let lines = block.lines().filter(|line| !line.starts_with("# "));
        let shown = lines.collect::<Vec<_>>().join("\n    ");
        write(
            &format!("src/bin/{program}.rs"),
            &format!(
                "fn main() -> Result<(), Box<dyn std::error::Error>> {{\n    {shown}\n    Ok(())\n}}\n"
            ),
        );
    }

    let checked = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--bins"])
        .current_dir(&crate_of_a_user)
        .env(
            "CARGO_TARGET_DIR",
            concat!(env!("CARGO_TARGET_TMPDIR"), "/.."),
        )
        .output()
        .unwrap();
    std::fs::remove_dir_all(&crate_of_a_user).unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() && said.is_empty(), "{said}");
}
