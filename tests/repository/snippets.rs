//! The pages' `[dependencies]`: cargo resolves each as it is written, beside a checkout, and builds
//! README's first program with them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Lines of dependencies in a page, and the program below them.
struct Snippet {
    page: String,
    lines: String,
    program: Option<String>,
}

/// All of them in README, `docs/` and the pages of the packages. `docs/upstream` is for the
/// maintainers of others.
fn snippets() -> Vec<Snippet> {
    let mut pages = vec![PathBuf::from("README.md")];
    let folders = crate::lists::crates().into_iter();
    let folders =
        folders.flat_map(|name| [format!("crates/{name}"), format!("crates/{name}/docs")]);
    for folder in folders.chain(["docs".to_owned()]) {
        let Ok(files) = fs::read_dir(Path::new(ROOT).join(&folder)) else {
            continue; // not each package has pages besides its README
        };
        let names = files.map(|file| file.unwrap().file_name());
        let pages_of = names.map(|name| Path::new(&folder).join(name));
        pages.extend(pages_of.filter(|page| page.extension().is_some_and(|it| it == "md")));
    }
    pages.sort();
    pages.iter().flat_map(|page| snippets_of(page)).collect()
}

fn snippets_of(page: &Path) -> Vec<Snippet> {
    let text = fs::read_to_string(Path::new(ROOT).join(page)).unwrap();
    let parts = text.split("```toml\n").skip(1);
    let snippet = |part: &str| {
        let (lines, rest) = part.split_once("```\n").unwrap();
        // Only a program that stands directly below is one with these lines.
        let program = rest.trim_start().strip_prefix("```");
        let program = program.and_then(|program| program.split("\n```").next());
        Snippet {
            page: page.display().to_string(),
            lines: lines.to_owned(),
            program: program.map(str::to_owned),
        }
    };
    parts.map(snippet).collect()
}

/// A user's package with these lines. Beside it stands the checkout, under the name that the pages
/// give it.
struct Package(PathBuf);

impl Package {
    fn new(name: &str, lines: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("snippets-{name}"));
        let package = folder.join("app");
        fs::create_dir_all(package.join("src")).unwrap();
        let checkout = folder.join("hookgate");
        if !checkout.exists() {
            std::os::unix::fs::symlink(fs::canonicalize(ROOT).unwrap(), checkout).unwrap();
        }
        // The folder is inside the checkout, so the package says that it is none of its workspace.
        // A page may name versions already that are not published yet.
        let mut manifest = format!(
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{lines}\n[workspace]\n[patch.crates-io]\n\
             hookgate = {{ path = \"../hookgate\" }}\n"
        );
        for name in crate::lists::crates() {
            manifest += &format!("hookgate-{name} = {{ path = \"../hookgate/crates/{name}\" }}\n");
        }
        fs::write(package.join("Cargo.toml"), manifest).unwrap();
        fs::write(package.join("src/main.rs"), "fn main() {}\n").unwrap();
        // The versions that the repository is tested with, which are on this machine.
        fs::copy(
            Path::new(ROOT).join("Cargo.lock"),
            package.join("Cargo.lock"),
        )
        .unwrap();
        Self(package)
    }

    fn cargo(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO"));
        command
            .current_dir(&self.0)
            .args(arguments)
            .arg("--offline");
        // The lock keeps parts that this package does not need, so `--locked` would refuse it.
        command
            .env_remove("CARGO_TARGET_DIR")
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .output()
            .unwrap()
    }
}

/// The output of a command that ended well.
fn well(output: &Output, what: &str) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {errors}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The crates that a program imports, but for the standard library's.
fn imported(program: &str) -> BTreeSet<String> {
    let uses = program.lines().filter_map(|line| {
        let line = line.trim_start_matches("# ").trim_start();
        line.strip_prefix("use ")?.split([':', ';']).next()
    });
    let foreign = uses.filter(|name| !["std", "super", "crate"].contains(name));
    foreign.map(|name| name.replace('_', "-")).collect()
}

#[test]
fn cargo_finds_each_name_feature_and_path_of_the_pages_dependencies() {
    let all = snippets();
    for Snippet {
        page,
        lines,
        program,
    } in &all
    {
        let is_table =
            lines.starts_with("[dependencies]\n") || lines.starts_with("[dev-dependencies]\n");
        assert!(
            is_table,
            "{page}: its lines can be pasted as they are:\n{lines}"
        );
        let package = Package::new("metadata", lines);
        let metadata = package.cargo(&["metadata", "--format-version=1"]);
        let metadata: Value = serde_json::from_str(&well(&metadata, page)).unwrap();
        let root = &metadata["resolve"]["root"];
        let packages = metadata["packages"].as_array().unwrap();
        let app = packages
            .iter()
            .find(|package| package["id"] == *root)
            .unwrap();
        let mut named: BTreeSet<_> = app["dependencies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|dependency| dependency["name"].as_str().unwrap().replace('_', "-"))
            .collect();
        if lines.starts_with("[dev-") {
            named.insert("hookgate".to_owned()); // of the program that is tested
        }
        let imported = imported(program.as_deref().unwrap_or_default());
        let missing: Vec<_> = imported.difference(&named).collect();
        assert!(
            missing.is_empty(),
            "{page}: its program needs {missing:?} too"
        );
    }
    let pages: BTreeSet<_> = all.iter().map(|snippet| &*snippet.page).collect();
    assert!(pages.len() > 12, "{pages:?}");
    for page in ["README.md", "docs/own-server.md", "docs/client.md"] {
        assert!(pages.contains(page), "{page}");
    }
}

#[test]
fn the_first_program_of_the_readme_is_built_with_its_lines_and_runs() {
    let snippet = snippets_of(Path::new("README.md")).swap_remove(0);
    let program = snippet.program.unwrap();
    let (_, program) = program.split_once('\n').unwrap(); // behind the language
    let package = Package::new("first", &snippet.lines);
    fs::write(package.0.join("src/main.rs"), program).unwrap();
    well(&package.cargo(&["build"]), program);
    // Without its secret it ends at once, and says which variable has to be set.
    let binary = package.0.join("target/debug/app");
    let output = Command::new(binary)
        .env_remove("WEBHOOK_SECRET")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("WEBHOOK_SECRET"),
        "{errors}"
    );
}
