//! The graph of imports of `src/`: every folder and every file faces one way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A module's path, as in `event::ids`. The root is the empty path.
type Module = String;
type Graph = BTreeMap<Module, BTreeSet<Module>>;

/// The modules of a crate, by path, with their code: without comments and without the tests at
/// their end.
struct Modules {
    code: BTreeMap<Module, String>,
    /// For each module, the names that it re-exports, and the paths that they stand for.
    names: BTreeMap<Module, BTreeMap<String, String>>,
}

impl Modules {
    fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let code: BTreeMap<_, _> = files
            .into_iter()
            .map(|(path, text)| (module(path), without_tests(text)))
            .collect();
        let mut modules = Self {
            code,
            names: BTreeMap::new(),
        };
        let mut names = BTreeMap::<Module, BTreeMap<String, String>>::new();
        for (module, code) in &modules.code {
            let reexports = uses(code).into_iter().filter(|(public, _)| *public);
            for path in reexports.filter_map(|(_, path)| modules.absolute(module, &path)) {
                let name = path.rsplit("::").next().unwrap().to_owned();
                names.entry(module.clone()).or_default().insert(name, path);
            }
        }
        modules.names = names;
        modules
    }

    /// Returns a path as seen from the root; `None` for a path into another crate.
    fn absolute(&self, from: &str, path: &str) -> Option<String> {
        let mut base: Vec<_> = from.split("::").filter(|part| !part.is_empty()).collect();
        let mut parts = path.split("::").peekable();
        match *parts.peek()? {
            "crate" => {
                parts.next();
                base.clear();
            }
            "self" => {
                parts.next();
            }
            "super" => {
                while parts.next_if_eq(&"super").is_some() {
                    base.pop();
                }
            }
            first => {
                let child = [base.as_slice(), &[first]].concat().join("::");
                self.code.get(&child)?;
            }
        }
        base.extend(parts);
        Some(base.join("::"))
    }

    /// Returns the module in which the item of this path stands.
    fn home(&self, path: &str) -> Module {
        let mut path = path.to_owned();
        for _ in 0..6 {
            let (module, rest) = self.split(&path);
            let first = rest.split("::").next().unwrap();
            match self.names.get(&module).and_then(|names| names.get(first)) {
                Some(next) => path.clone_from(next),
                None => return module,
            }
        }
        panic!("{path} is re-exported in a circle");
    }

    /// Returns the longest module of a path, and the rest.
    fn split<'p>(&self, path: &'p str) -> (Module, &'p str) {
        let ends = path.match_indices("::").map(|(end, _)| end);
        let mut ends: Vec<_> = ends.chain([path.len()]).collect();
        ends.reverse();
        for end in ends {
            if self.code.contains_key(&path[..end]) {
                return (path[..end].to_owned(), path[end..].trim_start_matches(':'));
            }
        }
        (String::new(), path)
    }

    /// Returns the files that each file imports from.
    fn files(&self) -> Graph {
        let imports = |module: &Module, code: &String| {
            let named = uses(code).into_iter().filter(|(public, _)| !public);
            let paths = named.map(|(_, path)| path).chain(inline(code));
            let homes = paths
                .filter_map(|path| self.absolute(module, &path))
                .map(|path| self.home(&path));
            homes.filter(|home| home != module).collect()
        };
        let all = self.code.iter();
        all.map(|(module, code)| (module.clone(), imports(module, code)))
            .collect()
    }

    /// Returns the folders that each folder imports from. A file of the root counts as a folder.
    fn folders(&self) -> Graph {
        let folder = |module: &Module| module.split("::").next().unwrap().to_owned();
        let mut folders = Graph::new();
        for (module, imports) in self.files() {
            let own = folder(&module);
            let others = imports.iter().map(folder).filter(|other| *other != own);
            folders.entry(own.clone()).or_default().extend(others);
        }
        folders
    }
}

/// `event/ids.rs` is `event::ids`, `event/mod.rs` is `event`, `lib.rs` is the root.
fn module(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { "" } else { path }.replace('/', "::")
}

fn without_tests(text: &str) -> String {
    let text = text.split("\nmod tests {").next().unwrap();
    let text = text.split("\npub(crate) mod tests {").next().unwrap();
    let text = text.split("\nmod races {").next().unwrap();
    let lines = text.lines().filter(|line| {
        let line = line.trim_start();
        !line.starts_with("//") && !line.contains("mod tests;")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the statements that import, and the rest of the code.
fn split_uses(code: &str) -> (Vec<&str>, String) {
    let (mut uses, mut rest, mut statement) = (Vec::new(), String::new(), None);
    let mut at = 0;
    for line in code.split_inclusive('\n') {
        let bare = line.trim_start();
        let bare = bare.strip_prefix("pub(crate) ").unwrap_or(bare);
        let bare = bare.strip_prefix("pub(super) ").unwrap_or(bare);
        let bare = bare.strip_prefix("pub ").unwrap_or(bare);
        if statement.is_none() && bare.starts_with("use ") {
            statement = Some(at);
        }
        at += line.len();
        match statement {
            None => rest.push_str(line),
            Some(start) if line.trim_end().ends_with(';') => {
                uses.push(code[start..at].trim());
                statement = None;
            }
            Some(_) => {}
        }
    }
    (uses, rest)
}

/// Returns the paths that are imported, each with whether it is re-exported.
fn uses(code: &str) -> Vec<(bool, String)> {
    let statements = split_uses(code).0.into_iter();
    statements
        .flat_map(|statement| {
            let public = statement.starts_with("pub");
            let tree = statement.split_once("use ").unwrap().1;
            let paths = expand(tree.trim_end_matches(';'));
            paths.into_iter().map(move |path| (public, path))
        })
        .collect()
}

/// Expands `a::{b, c::{d, e}}`. An alias is left out.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap().trim();
        return vec![path.trim_end_matches("::self").to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, sign) in inner.char_indices() {
        match sign {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    let parts = parts.into_iter().filter(|part| !part.trim().is_empty());
    parts
        .flat_map(|part| expand(&format!("{prefix}{}", part.trim())))
        .collect()
}

/// Returns the paths that stand in the code itself.
fn inline(code: &str) -> Vec<String> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for line in split_uses(code).1.lines() {
        let paths = line.split(|c| !word(c) && c != ':');
        let paths = paths.filter(|path| path.contains("::") && !path.starts_with(':'));
        found.extend(paths.map(|path| path.trim_end_matches(':').to_owned()));
    }
    found
}

/// Returns the circles: the largest sets of nodes of which each leads to each.
fn circles(graph: &Graph) -> Vec<Vec<&str>> {
    let reached = |from: &str| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(node) = next.pop() {
            for other in graph.get(&node).into_iter().flatten() {
                if reached.insert(other.clone()) {
                    next.push(other.clone());
                }
            }
        }
        reached
    };
    let reached: BTreeMap<_, _> = graph.keys().map(|node| (&**node, reached(node))).collect();
    let circle = |node: &str| -> Vec<&str> {
        let back =
            |other: &&&str| reached[node].contains(**other) && reached[**other].contains(node);
        reached.keys().filter(back).copied().collect()
    };
    let circles: BTreeSet<_> = graph.keys().map(|node| circle(node)).collect();
    circles
        .into_iter()
        .filter(|circle| !circle.is_empty())
        .collect()
}

fn library() -> Modules {
    package("src")
}

/// The modules below this folder of the repository.
fn package(src: &str) -> Modules {
    let src = Path::new(ROOT).join(src);
    let mut files = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&src).unwrap().to_str().unwrap();
                let name = name.replace('\\', "/");
                files.push((name, std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let tests = |name: &str| name.contains("tests") || name.contains("contract");
    let files = files.iter().filter(|(name, _)| !tests(name));
    Modules::of(files.map(|(name, text)| (&**name, &**text)))
}

/// The graph without the root, which only names the others.
fn compared(mut graph: Graph) -> Graph {
    graph.remove("");
    for imports in graph.values_mut() {
        imports.remove("");
    }
    graph
}

#[test]
fn no_folder_is_part_of_a_circle() {
    let graph = compared(library().folders());
    assert!(graph["layer"].contains("pipeline") && graph["receiver"].contains("layer"));
    assert_eq!(circles(&graph), [[""; 0]; 0]);
}

#[test]
fn no_file_is_part_of_a_circle() {
    let graph = compared(library().files());
    assert!(graph["event"].contains("event::parse"));
    assert!(graph["event::parse"].contains("event::content"));
    assert!(graph["layer::request"].contains("pipeline::delivery"));
    assert_eq!(circles(&graph), [[""; 0]; 0]);
}

#[test]
fn no_file_of_a_store_or_of_the_inbox_is_part_of_a_circle() {
    for (name, from, to) in [
        ("inbox", "inbox", "engine"),
        ("postgres", "claims", "pool"),
        ("redis", "store", "connection"),
        ("sqlite", "store", "calls"),
    ] {
        let graph = compared(package(&format!("crates/{name}/src")).files());
        assert!(graph[from].contains(to), "{name}");
        assert_eq!(circles(&graph), [[""; 0]; 0], "{name}");
    }
}

#[test]
fn no_file_of_order_is_part_of_a_circle() {
    let graph = compared(package("crates/order/src").files());
    assert!(graph["run"].contains("judge"));
    assert_eq!(circles(&graph), [[""; 0]; 0]);
}

#[test]
fn no_file_of_the_delivery_log_is_part_of_a_circle() {
    let graph = compared(package("crates/record/src").files());
    assert!(graph["recorder"].contains("observer"));
    assert_eq!(circles(&graph), [[""; 0]; 0]);
}

#[test]
fn no_file_of_the_client_the_emulator_or_the_test_tools_is_part_of_a_circle() {
    for (name, from, to) in [
        ("client", "rows", "client"),
        ("emulator", "deliver::passing", "deliver::engine"),
        ("testing", "log::file", "log::lines"),
    ] {
        let graph = compared(package(&format!("crates/{name}/src")).files());
        assert!(graph[from].contains(to), "{name}");
        assert_eq!(circles(&graph), [[""; 0]; 0], "{name}");
    }
}

#[test]
fn no_file_of_the_command_is_part_of_a_circle() {
    let graph = compared(package("crates/cli/src").files());
    assert!(graph["doctor"].contains("doctor::settings"));
    assert_eq!(circles(&graph), [[""; 0]; 0]);
}

#[test]
fn a_planted_circle_is_found() {
    let planted = |store: &str| {
        let files = [
            ("lib.rs", "mod store;\nmod walk;\npub use walk::Walk;"),
            ("store/mod.rs", "mod local;\npub use local::Local;"),
            ("store/local.rs", store),
            (
                "walk.rs",
                "use crate::store::{\n    Local,\n};\npub struct Walk(Local);",
            ),
        ];
        let modules = Modules::of(files);
        let (folders, files) = (modules.folders(), modules.files());
        (
            circles(&folders).concat().join(" "),
            circles(&files).concat().join(" "),
        )
    };
    let found = ("store walk".to_owned(), "store::local walk".to_owned());
    assert_eq!(planted("use crate::walk::Walk;"), found);
    assert_eq!(planted("use crate::Walk;"), found);
    assert_eq!(planted("fn of(_: super::super::walk::Walk) {}"), found);
    let nothing = (String::new(), String::new());
    assert_eq!(planted("// use crate::walk::Walk;"), nothing);
    assert_eq!(planted("\nmod tests {\n    use crate::Walk;\n}"), nothing);
}
