//! The relative links of all pages: the file and the heading that each names are there, with the
//! anchors that GitHub makes.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use std::path::{Component, Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The lines of a page with their numbers, without its blocks of code.
fn prose(page: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    page.lines().enumerate().filter_map(move |(at, line)| {
        let ticks = line.trim_start().chars().take_while(|&c| c == '`').count();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            None => return Some((at + 1, line)),
            Some(open) if ticks >= open => fence = None,
            Some(_) => {}
        }
        None
    })
}

/// The text between `open` and `close`, as often as it is there.
fn between<'t>(text: &'t str, open: &'t str, close: char) -> impl Iterator<Item = &'t str> {
    text.split(open)
        .skip(1)
        .filter_map(move |rest| Some(rest.split_once(close)?.0))
}

/// GitHub's anchor of a heading: the letters, digits, hyphens and underscores of what is shown, in
/// lower case; a space is a hyphen.
fn anchor(heading: &str) -> String {
    let mut shown = heading.to_owned();
    for target in between(heading, "](", ')') {
        shown = shown.replace(&format!("]({target})"), "");
    }
    let kept = |c: char| match c {
        ' ' => Some('-'),
        '-' | '_' => Some(c),
        c => c.is_alphanumeric().then_some(c),
    };
    shown.to_lowercase().chars().filter_map(kept).collect()
}

/// All anchors of a page. The second heading of one text gets `-1`, the third `-2`.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut seen, mut found) = (BTreeMap::new(), BTreeSet::new());
    for (_, line) in prose(page) {
        let heading = line.trim_start_matches('#');
        if (1..=6).contains(&(line.len() - heading.len())) && heading.starts_with(' ') {
            let name = anchor(heading.trim());
            let before = seen.entry(name.clone()).or_insert(0);
            found.insert(match *before {
                0 => name,
                n => format!("{name}-{n}"),
            });
            *before += 1;
        }
        found.extend(between(line, "<a id=\"", '"').map(str::to_owned));
    }
    found
}

/// The relative links of a page with their lines, those of rustdoc left out.
fn links(page: &str) -> Vec<(usize, &str)> {
    let targets = prose(page).flat_map(|(at, line)| {
        let defined = line
            .strip_prefix('[')
            .and_then(|rest| Some(rest.split_once("]: ")?.1.trim()));
        between(line, "](", ')')
            .chain(defined)
            .zip(iter::repeat(at))
    });
    let relative = targets.filter(|(to, _)| !to.contains(':') && !to.contains(' '));
    relative.map(|(to, at)| (at, to)).collect()
}

/// `docs/../README.md` is `README.md`.
fn within(folder: &Path, path: &str) -> PathBuf {
    let mut out = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

/// The links of these pages that lead nowhere. `exists` knows the files that are no pages.
fn dead(pages: &BTreeMap<PathBuf, String>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut dead = Vec::new();
    for (name, page) in pages {
        for (at, link) in links(page) {
            let (path, wanted) = link.split_once('#').unwrap_or((link, ""));
            let target = match path {
                "" => name.clone(),
                path => within(name.parent().unwrap(), path),
            };
            let lives = match pages.get(&target) {
                Some(page) => wanted.is_empty() || anchors(page).contains(wanted),
                None => exists(&target),
            };
            if !lives {
                dead.push(format!("{}:{at}: {link}", name.display()));
            }
        }
    }
    dead
}

#[test]
fn every_relative_link_of_a_page_leads_to_a_file_and_a_heading() {
    let mut pages = BTreeMap::new();
    crate::lists::each_file(Path::new(ROOT), "md", &mut |path, text| {
        let name = Path::new(path).strip_prefix(ROOT).unwrap();
        pages.insert(name.to_owned(), text.to_owned());
    });
    assert!(pages.values().map(|page| links(page).len()).sum::<usize>() > 200);
    let dead = dead(&pages, |file| Path::new(ROOT).join(file).exists());
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn a_planted_dead_link_or_anchor_is_found() {
    let page = "# One `word`, two_words & more\n\n## Again\n## Again\n\n## [Linked](x.md) text\n```sh\n# comment\n```\n";
    let here = "[a](../a.md#one-word-two_words--more) [b](../a.md#again-1) [c](../a.md#linked-text) [d](#again)\n# Again\n";
    let found = |link: &str| {
        let pages = [("a.md", page), ("docs/b.md", &format!("{here}{link}\n"))];
        let pages = pages.map(|(name, text)| (PathBuf::from(name), text.to_owned()));
        dead(&pages.into(), |file| {
            file == Path::new("docs/x.rs") || file == Path::new("x.md")
        })
        .len()
    };
    for alive in [
        "",
        "[x](x.rs)",
        "[`T`](crate::T)",
        "[x](https://x.example#y)",
        "[x]: ../a.md#again",
    ] {
        assert_eq!(found(alive), 0, "{alive}");
    }
    for dead in [
        "[x](y.rs)",
        "[x](#above)",
        "[x](../a.md#again-2)",
        "[x](../a.md#comment)",
        "[x](../a.md#One-word)",
        "[x]: a.md",
    ] {
        assert_eq!(found(dead), 1, "{dead}");
    }
}
