//! The page at `/`: its files, embedded in the program.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

/// Returns the file at this path.
pub(crate) fn file(path: &str) -> Option<File> {
    match path {
        "/" => Some(File {
            kind: "text/html; charset=utf-8",
            text: include_str!("page/index.html"),
        }),
        _ => None,
    }
}
