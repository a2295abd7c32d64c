//! The page at `/`, embedded in the program: plain HTML, CSS and JavaScript modules, each file with
//! one part of it.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const fn kind(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'j', b's'] => SCRIPT,
        [.., b's', b's'] => CSS,
        _ => SVG,
    }
}

macro_rules! files {
    ($($name:literal)*) => {
        /// Each file below `/_page/`, with its kind.
        const FILES: &[(&str, File)] = &[$((
            $name,
            File { kind: kind($name), text: include_str!(concat!("page/", $name)) },
        )),*];
    };
}

files! {
    "api.js" "connection.js" "curl.js" "deliveries.js" "delivery_actions.js" "delivery_detail.js"
    "delivery_filter.js" "delivery_list.js" "dom.js" "emulate.js" "event_types.js" "explained.js"
    "faults.js" "form.js" "grid.js" "icon.svg" "json.js" "keys.js" "listen.js" "live.js" "page.css"
    "people.js" "place.js" "requests.js" "resource.js" "rows.js" "search.js" "store.js" "ticking.js"
    "times.js" "told.js" "top.js" "trigger_form.js" "triggers.js" "values.js" "webhooks.js"
    "workspace.js"
}

/// The page of `hookgate emulate`.
pub(crate) const EMULATE: File = File {
    kind: HTML,
    text: include_str!("page/emulate.html"),
};
/// The page of `hookgate listen --page`.
pub(crate) const LISTEN: File = File {
    kind: HTML,
    text: include_str!("page/listen.html"),
};

/// Returns the file at this path; `index` is that at `/`.
pub(crate) fn file(path: &str, index: File) -> Option<File> {
    if path == "/" {
        return Some(index);
    }
    let name = path.strip_prefix("/_page/")?;
    let found = FILES.iter().find(|(other, _)| *other == name)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EVENT_TYPES;

    fn script(name: &str) -> &'static str {
        FILES
            .iter()
            .find(|(other, _)| *other == name)
            .unwrap()
            .1
            .text
    }

    /// Texts of rows and deliveries come from others: they must never be read as HTML or as a
    /// script.
    #[test]
    fn no_file_writes_html_or_runs_texts() {
        let ways = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "srcdoc",
            "createContextualFragment",
            "setHTML",
            "eval(",
            "Function(",
            "javascript:",
        ];
        for (name, file) in FILES
            .iter()
            .chain([&("emulate.html", EMULATE), &("listen.html", LISTEN)])
        {
            for way in ways {
                assert!(!file.text.contains(way), "{name} has {way}");
            }
        }
        // Inline styles and handlers are against the page's policy.
        for page in [EMULATE, LISTEN] {
            assert!(!page.text.contains("style=") && !page.text.contains(" on"));
        }
    }

    #[test]
    fn every_file_is_served_and_names_others_that_exist() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page");
        let mut there: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| !name.ends_with(".html"))
            .collect();
        there.sort();
        let served: Vec<_> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, served);
        for (name, file) in FILES {
            for part in file.text.split(" from './").skip(1) {
                let other = part.split('\'').next().unwrap();
                assert!(served.contains(&other), "{name} imports {other}");
            }
            assert!(file.text.lines().count() <= 350, "{name} is long");
        }
    }

    #[test]
    fn the_page_knows_every_event_type() {
        let text = script("event_types.js");
        let list = text.split(['[', ']']).nth(1).unwrap();
        let types: Vec<_> = list.split('\'').skip(1).step_by(2).collect();
        assert_eq!(types, EVENT_TYPES);
    }
}
