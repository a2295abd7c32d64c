//! Event types as the user asks for them.

/// Whether a type equals the wanted one, or begins as `row.*` requires.
pub(crate) fn is_of_type(wanted: &str, event_type: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => event_type == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_rest() {
        for (wanted, row_created) in [
            ("row.created", true),
            ("row.*", true),
            ("*", true),
            ("row", false),
            ("page.*", false),
            ("Row.*", false),
        ] {
            assert_eq!(is_of_type(wanted, "row.created"), row_created, "{wanted}");
        }
    }
}
