//! The code that a framework needs beside the handler and `main` stays short, and the list of
//! examples counts it right.

use std::path::Path;

/// The greatest number of lines. If an example needs more, change the crate's API instead.
const MAX_LINES: usize = 30;

#[test]
fn no_framework_needs_more_than_30_lines_of_glue() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let list = std::fs::read_to_string(folder.join("../README.md")).unwrap();
    let mut examples = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        examples += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        let glue = text.split("// Glue begins.").nth(1);
        let glue = glue.and_then(|rest| rest.split("// Glue ends.").next());
        let glue = glue.unwrap_or_else(|| panic!("{}: where is the glue?", path.display()));
        let lines = glue.lines().filter(|line| !line.trim().is_empty()).count();
        assert!(
            (1..=MAX_LINES).contains(&lines),
            "{}: {lines} lines",
            path.display()
        );
        let name = path.file_name().unwrap().to_str().unwrap();
        let row = format!("(frameworks/{name}) | {lines} |");
        assert!(list.contains(&row), "examples/README.md has no {row}");
    }
    assert_eq!(examples, 4);
}
