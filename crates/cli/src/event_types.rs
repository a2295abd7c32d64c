//! Event types as the user asks for them.

use hookgate_testing::factory::EVENT_TYPES;

/// Whether a type equals the wanted one, or begins as `row.*` requires.
pub(crate) fn is_of_type(wanted: &str, event_type: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(beginning) => event_type.starts_with(beginning),
        None => event_type == wanted,
    }
}

/// Checks that the text is an event type of the service, or the beginning of one with a star behind
/// it.
///
/// # Errors
/// The text fits no type. The sentence names the nearest type, or all types.
pub(crate) fn known(wanted: &str) -> Result<(), String> {
    if EVENT_TYPES.iter().any(|known| is_of_type(wanted, known)) {
        return Ok(());
    }
    let beginning = wanted.trim_end_matches(['*', '.']).to_lowercase();
    let mut kinds = EVENT_TYPES.iter().filter_map(|known| known.split_once('.'));
    let kind = kinds.find(|(kind, _)| *kind == beginning);
    let begins = |known: &&&str| !beginning.is_empty() && known.starts_with(&beginning);
    let mut types = EVENT_TYPES.iter();
    let near = types.clone().find(|known| is_near(known, wanted));
    let meant = kind.map(|(kind, _)| format!("{kind}.*")).or_else(|| {
        near.or_else(|| types.find(begins))
            .map(|&known| known.to_owned())
    });
    Err(match meant {
        Some(meant) => format!("it is none of the service's types: did you mean {meant}?"),
        None => format!(
            "it is none of the service's types: {}",
            EVENT_TYPES.join(", ")
        ),
    })
}

/// Whether the typed text is a known type but for two letters: left out, too many, wrong, or in
/// another order.
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
    fn a_type_that_the_service_lacks_is_refused_with_the_nearest_one() {
        for wanted in ["row.created", "row.*", "page.u*", "*"] {
            assert_eq!(known(wanted), Ok(()), "{wanted}");
        }
        for (wanted, meant) in [
            ("row.creatd", "mean row.created?"),
            ("row", "mean row.*?"),
            ("row.", "mean row.*?"),
            ("Row.*", "mean row.*?"),
            ("member.inv", "mean member.invited?"),
            ("order.made", "types: row.created, row.updated"),
        ] {
            let refused = known(wanted).unwrap_err();
            assert!(refused.contains(meant), "{wanted}: {refused}");
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
