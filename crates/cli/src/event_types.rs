//! Event types as the user asks for them.

/// Whether a type equals the wanted one, or begins as `row.*` requires.
pub(crate) fn is_of_type(wanted: &str, event_type: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => event_type == wanted,
    }
}

/// Whether the typed text is a known type but for two letters: left out, too many, wrong, or in another order.
pub(crate) fn is_near(known: &str, typed: &str) -> bool {
    // The distance of Levenshtein, row by row.
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (at, letter) in typed.bytes().enumerate() {
        let mut before = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in known.bytes().enumerate() {
            let changed = before + usize::from(letter != other);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[known.len()] <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_that_is_misspelt_is_near_the_known_one() {
        for (typed, near) in [
            ("row.craeted", true),
            ("row.create", true),
            ("rowcreated", true),
            ("Row.Created", true),
            ("row.created", true),
            ("row.deleted", false),
            ("row", false),
            ("", false),
            ("order.created", false),
        ] {
            assert_eq!(is_near("row.created", typed), near, "{typed}");
        }
    }

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
