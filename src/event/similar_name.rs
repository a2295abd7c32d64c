//! A missing name and one in the row that looks like it: another case, a space that does not show,
//! a letter with its accent as one character or as two, a letter of another script.

use super::deserialize::{push_capped, push_name};
use super::event_error::EventError;
use super::fields::Fields;

/// Adds to the error of a missing field the name in the row that looks like it. `object` is the
/// path of these fields. Nothing is added to an error of another kind, or of a field inside a
/// value.
pub(super) fn name_similar<V>(error: EventError, object: &str, fields: &Fields<V>) -> EventError {
    let Some(missing) = error.missing() else {
        return error;
    };
    let mut path = object.to_owned();
    push_name(&mut path, missing);
    let letters = letters_of(missing);
    let mut names = fields.iter().map(|(name, _)| name);
    let similar = names.find(|name| look_alike(&letters, &letters_of(name)));
    match similar.filter(|_| error.path() == Some(&*path)) {
        Some(name) => {
            let mut reason = String::from("the row has \"");
            // All but ASCII is escaped: the two names may look the same.
            push_capped(&mut reason, name.escape_default());
            reason.push('"');
            error.because(Some(reason))
        }
        None => error,
    }
}

/// A letter or digit in upper case, and whether an accent follows it as a character of its own.
struct Letter {
    base: char,
    is_accented: bool,
}

/// Returns the letters and digits of a name, in upper case.
fn letters_of(name: &str) -> Vec<Letter> {
    let mut letters: Vec<Letter> = Vec::new();
    let lower = name.chars().flat_map(char::to_lowercase);
    for char in lower.flat_map(char::to_uppercase) {
        // Accents of Latin, Greek and Cyrillic, and the sound marks of kana.
        if matches!(char, '\u{300}'..='\u{36f}' | '\u{3099}' | '\u{309a}') {
            if let Some(letter) = letters.last_mut() {
                letter.is_accented = true;
            }
        } else if char.is_alphanumeric() {
            letters.push(Letter {
                base: char,
                is_accented: false,
            });
        }
    }
    letters
}

/// Returns whether two names have the same letters, where a letter with an accent may be one
/// character or two, and up to half of the letters may be an ASCII letter in one name and another
/// in the other.
fn look_alike(one: &[Letter], other: &[Letter]) -> bool {
    let mut confusable = 0;
    let mut pairs = one.iter().zip(other);
    let all = pairs.all(|(one, other)| {
        let is_composed = |one: &Letter, other: &Letter| {
            one.is_accented && !other.is_accented && !other.base.is_ascii()
        };
        if one.base == other.base || is_composed(one, other) || is_composed(other, one) {
            return true;
        }
        confusable += 1;
        one.base.is_ascii() != other.base.is_ascii()
    });
    all && !one.is_empty() && one.len() == other.len() && confusable * 2 <= one.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_reader_takes_for_the_same_look_alike() {
        for (one, other, expected) in [
            ("Prénom", "Pre\u{301}nom", true),
            ("Numéro créé", "Nume\u{301}ro cre\u{301}e\u{301}", true),
            ("Имя й", "Имя и\u{306}", true),
            ("がぎ", "か\u{3099}き\u{3099}", true),
            ("ΐ", "ι\u{308}\u{301}", true),
            ("Total", "Total ", true),
            ("Total", "\u{feff}total\u{200b}", true),
            ("Net Total", "Net\u{a0}Total", true),
            ("Net Total", "NetTotal", true),
            ("Total", "TOTAL", true),
            ("Total", "Tоtаl", true), // two Cyrillic letters
            ("Straße", "STRASSE", true),
            ("m2", "m²", true),
            ("Prenom", "Prénom", true),
            ("Total", "Totale", false),
            ("Total", "Tonal", false),
            ("Имя", "Due", false),
            ("Имя", "Дом", false),
            ("", " ", false),
            ("€", "$", false),
        ] {
            let alike = |one, other| look_alike(&letters_of(one), &letters_of(other));
            assert_eq!(alike(one, other), expected, "{one} {other}");
            assert_eq!(alike(other, one), expected, "{other} {one}");
        }
    }
}
