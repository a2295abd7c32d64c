//! Checks that the things that ARCHITECTURE.md excludes are absent.

use std::path::{Path, PathBuf};

use crate::lists::{crates, each_source};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A file of the library, or of another crate that is published.
struct Source {
    /// Below `src`, with `/`; of another crate with that crate's folder, as in `cli/main.rs`.
    name: String,
    text: String,
}

impl Source {
    /// Its lines of code, each without the part after `//`. A `//` in a string cuts that line
    /// short, which hides nothing that is searched here.
    fn code(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .map(|line| line.split("//").next().unwrap())
    }

    fn names(&self, path: &str) -> bool {
        let word = |c: char| c.is_alphanumeric() || c == '_';
        // A path must start at a word boundary; a method may follow any text.
        let begins = |line: &str, at: usize| path.starts_with('.') || !line[..at].ends_with(word);
        self.code()
            .any(|line| line.match_indices(path).any(|(at, _)| begins(line, at)))
    }
}

fn sources() -> Vec<Source> {
    let mut sources = Vec::new();
    let crates = crates().into_iter();
    let crates = crates.map(|name| (format!("crates/{name}/src"), format!("{name}/")));
    for (src, prefix) in [("src".to_owned(), String::new())]
        .into_iter()
        .chain(crates)
    {
        let src = Path::new(ROOT).join(src);
        let mut folders = vec![src.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name = path.strip_prefix(&src).unwrap().to_str().unwrap();
                    sources.push(Source {
                        name: format!("{prefix}{}", name.replace('\\', "/")),
                        text: std::fs::read_to_string(&path).unwrap(),
                    });
                }
            }
        }
    }
    assert!(sources.len() > 30);
    sources
}

/// The names of the files that name any of these paths.
fn who_names(paths: &[&str]) -> Vec<String> {
    let named = |source: &Source| paths.iter().any(|path| source.names(path));
    let mut names: Vec<_> = sources()
        .into_iter()
        .filter(named)
        .map(|source| source.name)
        .collect();
    names.sort();
    names
}

/// Lines of the file that names crypto in which bytes of a MAC could be compared by anything but
/// `subtle`. No timing shows a `==` on 32 bytes, which compiles to two wide steps on one machine
/// and to an early exit on the next; so this test searches the source.
fn doubtful_comparisons(signature_rs: &str) -> Vec<&str> {
    // A comparison takes constant time, and is here where the sides are known.
    const COMPARED: [&str; 3] = [
        // The form of the key, which an operator has set.
        "if form != scheme::Key::Text {",
        "tag.0.as_bytes().as_slice().ct_eq(signature)",
        "one.as_bytes().as_slice().ct_eq(another.as_bytes()).into()",
    ];
    // The bytes leave their wrapper, which wipes them, in two more places: where a signature is
    // made, and where the operator's own keys are compared.
    const BARE: [&str; 2] = [
        "tag.into_bytes().into()",
        "self.mac_of_no_bytes().into_bytes().into()",
    ];
    const OTHER_WAYS: [&str; 19] = [
        "==",
        "!=",
        ".ct_eq(",
        ".as_bytes().as_",
        "into_bytes()",
        ".eq(",
        ".ne(",
        ".cmp(",
        ".partial_cmp(",
        "matches!(",
        "memcmp",
        "starts_with(",
        "ends_with(",
        "contains(",
        ".position(",
        ".all(",
        ".any(",
        "PartialEq",
        "PartialOrd",
    ];
    let code = signature_rs.split("#[cfg(test)]\nmod ").next().unwrap();
    let is_doubtful = |line: &&str| {
        let line = line.split("//").next().unwrap().trim();
        let is_known = COMPARED.contains(&line) || BARE.contains(&line);
        !is_known && OTHER_WAYS.iter().any(|way| line.contains(way))
    };
    code.lines().filter(is_doubtful).collect()
}

// fault S2-29: timing tells how much of a signature was right, or which subscriptions exist
#[test]
fn digests_are_compared_in_constant_time_only() {
    let sources = sources();
    let file = |name: &str| {
        &sources
            .iter()
            .find(|source| source.name == name)
            .unwrap()
            .text
    };
    let signature_rs = file("verify/signature.rs");
    assert_eq!(doubtful_comparisons(signature_rs), [""; 0]);
    // The functions whose results are compared: each wipes its bytes.
    for wrapped in [
        "fn is_equal(tag: &Tag, signature: &[u8; 32]) -> Choice",
        "fn tag(&self, head: &SignedHead, body: &[u8]) -> Tag",
        "struct Tag(CtOutput<MacState>);",
        "fn mac_of_no_bytes(&self) -> CtOutput<MacState>",
    ] {
        assert!(signature_rs.contains(wrapped), "{wrapped}");
    }
    assert_eq!(signature_rs.matches("fn tag(").count(), 1);
    // A signature is parsed and written elsewhere, and its bytes are compared nowhere else.
    let written = file("scheme/written.rs");
    assert!(written.contains("#[derive(Clone)]\npub(crate) struct Signatures {"));
    let compared = [
        "signature ==",
        "signature !=",
        "== signature",
        "first ==",
        "ct_eq",
    ];
    assert!(!compared.iter().any(|way| written.contains(way)));
    assert_eq!(who_names(&["mac_of("]), ["verify/signature.rs"]);
    // No data of a request takes part in that comparison.
    assert_eq!(who_names(&["key.mark("]), ["verify/keyring.rs"]);
    // Keys of any bytes serve to find the cause of a failure. They return a place in a list, never
    // a MAC.
    for name in who_names(&["TrialKey"]) {
        assert!(name.starts_with("testing/explain/"), "{name}");
    }
    let trial = file("testing/explain/trial_key.rs");
    let trial = trial.split("#[cfg(test)]\nmod ").next().unwrap();
    let signed = "pub(super) fn signed(&self, stamp: &[u8], body: &[u8], claimed: &[[u8; 32]]) -> Option<usize>";
    assert!(trial.contains(signed));
    assert_eq!(trial.matches("fn ").count(), 3, "new, of_scheme and signed");
    // The bytes of its MAC are compared by `hmac`, and leave it in no other way.
    let code: Vec<_> = trial.lines().filter(|line| !line.contains("//")).collect();
    let code = code.join("\n");
    assert_eq!(code.matches("verify_slice(").count(), 1);
    for other in ["==", "!=", "finalize", "into_bytes", "as_bytes"] {
        assert!(!code.contains(other), "{other}");
    }
    // As text a signature could be compared anywhere. Only the signer makes one, and unit tests,
    // which stand last in a file.
    let makes_one = |source: &&Source| {
        let code = source.text.split("#[cfg(test)]\nmod tests").next();
        let mut lines = code.unwrap().lines();
        lines.any(|line| {
            line.split("//")
                .next()
                .unwrap()
                .contains("to_header_value(")
        })
    };
    let mut who: Vec<_> = sources
        .iter()
        .filter(makes_one)
        .map(|source| &*source.name)
        .collect();
    who.sort_unstable();
    assert_eq!(who, ["testing/signer.rs", "verify/signature.rs"]);
    let signer = file("testing/signer.rs").lines();
    for line in signer.filter(|line| line.contains("to_header_value(") && !line.contains("//")) {
        assert!(!line.contains("==") && !line.contains("!="), "{line}");
    }
}

#[test]
fn a_planted_comparison_of_digests_is_found() {
    let sources = sources();
    let is_crypto = |source: &&Source| source.name == "verify/signature.rs";
    let good = &sources.iter().find(is_crypto).unwrap().text;
    let real = "tag.0.as_bytes().as_slice().ct_eq(signature)";
    for planted in [
        "tag.as_bytes().as_slice() == signature.0",
        "self.tag(timestamp, body).as_ref() == signature.0",
        "*tag == CtOutput::new(signature.0.into())",
        "mac == signature.0",
        "signature.0 == mac",
        "mac != signature.0",
        "!(mac[..] != signature.0[..])",
        "mac.eq(&signature.0)",
        "mac.cmp(&signature.0).is_eq()",
        "matches!(signature.0, mac)",
        "signature.0.starts_with(&mac)",
        "mac.iter().zip(signature.0).all(|(one, other)| one ^ other < 1)",
        "tag.as_bytes().as_slice()[..4].ct_eq(&signature.0[..4])",
        "tag.as_bytes().as_slice().ct_eq(&signature.0) & (mac == signature.0)",
    ] {
        assert!(good.contains(real));
        let bad = good.replacen(real, planted, 1);
        assert!(!doubtful_comparisons(&bad).is_empty(), "{planted}");
    }
    let derived = good.replacen(
        "#[derive(Clone, Copy)]\npub struct Signature",
        "#[derive(Clone, Copy, PartialEq)]\npub struct Signature",
        1,
    );
    assert_ne!(&derived, good);
    assert!(!doubtful_comparisons(&derived).is_empty());
}

#[test]
fn frameworks_stay_in_their_folders() {
    for name in who_names(&["tower_layer::", "tower_service::", "http_body::"]) {
        let apart = [
            "layer/",
            "receiver/serve.rs",
            "run.rs",
            "sink/acceptor.rs",
            "inbox/workers/",
            "order/service.rs",
            "testing/",
            "emulator/",
            "client/",
            "cli/",
        ];
        assert!(
            apart.iter().any(|folder| name.starts_with(folder)),
            "{name}"
        );
    }
    for name in who_names(&["axum_core::", "axum::"]) {
        let apart = [
            "layer/body.rs",
            "extract.rs",
            "order/extract.rs",
            "route/",
            "cli/",
        ];
        assert!(
            apart.iter().any(|folder| name.starts_with(folder)),
            "{name}"
        );
    }
}

#[test]
fn names_of_functions_are_short_enough_to_read() {
    let (mut long, mut names) = (Vec::new(), 0);
    crate::lists::each_source(".", &mut |_, text| {
        for after in text.split("fn ").skip(1) {
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let name = after.split(|c| !is_of_name(c)).next().unwrap();
            names += 1;
            if name.len() > 80 {
                long.push(name.to_owned());
            }
        }
    });
    assert!(names > 5_000, "{names} functions");
    assert!(long.is_empty(), "more than 80 characters: {long:?}");
}

/// The lines of comments that could be wrapped at 100 columns. Code, tables and links in them
/// stay, and so do the labels of faults, which one `grep` lists.
fn unwrapped(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let is_unwrapped = |line: &&str| {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_code = line.contains("doc = \"```");
            return false;
        };
        let comment = comment.trim_start_matches(['/', '!']);
        let words = comment.trim_start();
        is_code ^= words.starts_with("```");
        let stays = ["|", "fault ", "[", "<", "```", "# "];
        line.chars().count() > 100
            && words.contains(' ')
            && !is_code
            && !comment.starts_with("     ")
            && !stays.iter().any(|start| words.starts_with(start))
    };
    text.lines().filter(is_unwrapped).collect()
}

#[test]
fn comments_are_wrapped_at_100_columns() {
    let (mut files, mut found) = (0, Vec::new());
    for folder in ["src", "crates", "tests", "examples", "benches", "fuzz"] {
        crate::lists::each_source(folder, &mut |path, text| {
            files += 1;
            let lines = unwrapped(text);
            found.extend(lines.iter().map(|line| format!("{path}: {line}")));
        });
    }
    assert!(files > 500, "{files} files");
    assert!(found.is_empty(), "{found:#?}");
    let long = "word ".repeat(30);
    let (prose, code) = (
        format!("/// {long}\n"),
        format!("/// ```\n/// {long}\n/// ```\n"),
    );
    assert_eq!(unwrapped(&format!("{code}{prose}")).len(), 1);
    assert_eq!(
        unwrapped(&format!("let x = \"{long}\";\n    // {long}")).len(),
        1
    );
}

#[test]
fn unsafe_code_is_forbidden() {
    let is_library = |source: &Source| source.name.split('/').next_back() == Some("lib.rs");
    let libraries: Vec<_> = sources().into_iter().filter(is_library).collect();
    assert!(libraries.len() > 5);
    for library in libraries {
        let forbids = library.text.contains("\n#![forbid(unsafe_code)]\n");
        assert!(forbids, "{}", library.name);
    }
}

#[test]
fn the_command_is_built_only_where_it_is_asked_for() {
    let manifest = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let library = manifest("Cargo.toml");
    assert!(!library.contains("[[bin]]"));
    assert!(library.contains("\ndefault-members = [\".\"]\n"));
    let is_program = |source: &Source| source.name.starts_with("bin/") || source.name == "main.rs";
    assert!(!sources().iter().any(is_program));
    let command = manifest("crates/cli/Cargo.toml");
    assert_eq!(command.matches("[[bin]]").count(), 1);
    let command = command.split("[[bin]]").nth(1).unwrap();
    let command = command.split("\n[").next().unwrap();
    assert!(command.contains("name = \"hookgate\""), "{command}");
}

/// The macros of `tracing` in a source whose target is none of the two that `docs/tracing.md`
/// promises.
fn without_a_target(source: &Source) -> Vec<String> {
    const MACROS: [&str; 7] = ["trace", "debug", "info", "warn", "error", "event", "span"];
    let code: String = source.code().flat_map(|line| [line, "\n"]).collect();
    let constant = |value: &str| code.contains(&format!("const TARGET: &str = \"{value}\";"));
    let promised = constant("hookgate") || constant("hookgate::inbox");
    let calls = code.split("tracing::").skip(1).filter_map(|call| {
        let (name, arguments) = call.split_once('!')?;
        let of = name.strip_suffix("_span").unwrap_or(name);
        MACROS.contains(&of).then_some(arguments)
    });
    let has_none = |arguments: &&str| {
        let first = arguments[1..].trim_start();
        let literal = ["\"hookgate\",", "\"hookgate::inbox\","];
        let target = first.strip_prefix("target: ");
        !target.is_some_and(|target| {
            literal.iter().any(|name| target.starts_with(name))
                || (promised && target.starts_with("TARGET,"))
        })
    };
    calls
        .filter(has_none)
        .map(|arguments| {
            let line = arguments.lines().next().unwrap_or_default();
            format!("{}: {line}", source.name)
        })
        .collect()
}

// fault P6: lines of the log come from other targets than those that are promised, so that a filter hides them
#[test]
fn every_span_and_line_has_a_promised_target() {
    let found: Vec<_> = sources().iter().flat_map(without_a_target).collect();
    assert_eq!(found, [""; 0]);
    // No macro is imported, which would hide it here.
    for source in sources() {
        for line in source.code().filter(|line| line.contains("use tracing::")) {
            let is_field = line.trim().starts_with("use tracing::field::");
            assert!(is_field, "{}: {line}", source.name);
        }
    }
    for (planted, is_found) in [
        ("tracing::warn!(\"made up\")", true),
        ("tracing::info_span!(\n    \"made up\")", true),
        ("tracing::warn!(target: \"other\", \"made up\")", true),
        ("tracing::warn!(target: TARGET, \"made up\")", true),
        ("tracing::warn!(target: \"hookgate\", \"made up\")", false),
        (
            "tracing::info_span!(\n    target: \"hookgate::inbox\", \"made up\")",
            false,
        ),
    ] {
        let source = Source {
            name: "planted.rs".into(),
            text: planted.into(),
        };
        assert_eq!(!without_a_target(&source).is_empty(), is_found, "{planted}");
    }
}

#[test]
fn no_file_is_long() {
    for source in sources() {
        let code = source.text.split("\nmod tests {").next().unwrap();
        let lines = code.lines().count();
        assert!(
            lines <= 600,
            "{}: {lines} lines before its tests",
            source.name
        );
    }
}

/// No framework and no build step: what a reader of the pages' code has to know stays small.
#[test]
fn the_pages_have_at_most_2600_lines_of_javascript() {
    let folder = Path::new(ROOT).join("crates/emulator/src/page");
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let scripts = paths.filter(|path| path.extension().is_some_and(|it| it == "js"));
    let lines = scripts.map(|path| std::fs::read_to_string(path).unwrap().lines().count());
    let lines: usize = lines.sum();
    assert!((1_000..=2_600).contains(&lines), "{lines}");
}

/// What a header is called is said in the room of the schemes alone: not in code elsewhere, outside
/// of docs and unit tests.
#[test]
fn only_the_schemes_name_a_header_of_the_wire() {
    let headers = [
        "x-service-",
        "webhook-id",
        "webhook-timestamp",
        "webhook-signature",
        "stripe-signature",
        "x-hub-signature",
        "x-github-",
        "sha256=",
    ];
    let (mut inside, mut outside) = (0, Vec::new());
    each_source("src", &mut |path, text| {
        let code = text.split("#[cfg(test)]").next().unwrap().to_lowercase();
        let lines = code.lines().filter(|line| {
            let line = line.split("//").next().unwrap();
            headers.iter().any(|header| line.contains(header))
        });
        match path.contains("src/scheme/") {
            true => inside += lines.count(),
            false => outside.extend(lines.map(|line| format!("{path}: {line}"))),
        }
    });
    assert!(outside.is_empty(), "{outside:#?}");
    assert!(inside > 10, "{inside}");
}

// fault S2-29: timing tells how much of a signature was right, or which subscriptions exist
#[test]
fn only_one_file_computes_or_compares_a_signature() {
    let allowed = ["src/verify/signature.rs"];
    let mut offenders = Vec::new();
    each_source("src", &mut |path, text| {
        let names_crypto = [
            "use hmac",
            "use sha2",
            "use subtle",
            "hmac::",
            "sha2::",
            "subtle::",
        ]
        .iter()
        .any(|name| text.contains(name));
        if names_crypto && !allowed.iter().any(|allowed| path.ends_with(allowed)) {
            offenders.push(path.to_owned());
        }
    });
    assert!(offenders.is_empty(), "{offenders:?}");
}
