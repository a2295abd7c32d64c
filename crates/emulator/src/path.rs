//! Paths with places for ids.

/// Returns the parts of a path that stand for the `*` of a pattern; `None` if the path is another one.
pub(crate) fn matched<'p>(pattern: &str, path: &'p str) -> Option<Vec<&'p str>> {
    let mut ids = Vec::new();
    let mut parts = path.split('/');
    for expected in pattern.split('/') {
        let part = parts.next()?;
        if expected == "*" && !part.is_empty() {
            ids.push(part);
        } else if expected != part {
            return None;
        }
    }
    parts.next().is_none().then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::matched;

    #[test]
    fn a_star_stands_for_one_part() {
        assert_eq!(matched("a/*/b/*", "a/1/b/2"), Some(vec!["1", "2"]));
        for path in ["a/1/b", "a/1/b/2/", "a//b/2", "a/1/c/2", ""] {
            assert_eq!(matched("a/*/b/*", path), None, "{path}");
        }
    }
}
