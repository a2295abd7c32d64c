//! The filter for the shown deliveries.

use super::item::Item;

/// Words that must all match: `type:row.` and `outcome:refused` search one field, any other word is searched everywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter(Vec<Word>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    Type(String),
    Outcome(String),
    Anywhere(String),
}

impl Filter {
    pub(crate) fn parse(text: &str) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase);
        let word = |word: String| match word.split_once(':') {
            Some(("type", rest)) => Word::Type(rest.to_owned()),
            Some(("outcome", rest)) => Word::Outcome(rest.to_owned()),
            _ => Word::Anywhere(word),
        };
        Self(words.map(word).collect())
    }

    pub(crate) fn takes(&self, item: &Item) -> bool {
        self.0.iter().all(|word| match word {
            Word::Type(part) => item.event_type.to_lowercase().contains(part),
            Word::Outcome(part) => {
                item.outcome.contains(part)
                    || item.status.to_string().starts_with(part)
                    || item.verdict.word().starts_with(part)
            }
            Word::Anywhere(part) => item.contains(part),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{delivery, handled};
    use super::*;

    #[test]
    fn words_must_all_fit() {
        let done = Item::new(1, handled("evt_1"));
        let refused = Item::new(2, delivery("{}", 401, "not_authentic"));
        for (text, both) in [
            ("", (true, true)),
            ("  ", (true, true)),
            ("evt_1", (true, false)),
            ("EVT_1 row", (true, false)),
            ("evt_1 page", (false, false)),
            ("type:row.", (true, false)),
            ("type:Row.Deleted", (true, false)),
            ("outcome:handled", (true, false)),
            ("outcome:refused", (false, true)),
            ("outcome:4", (false, true)),
            ("outcome:204 type:row", (true, false)),
            ("evt_header", (false, true)),
        ] {
            let filter = Filter::parse(text);
            assert_eq!(
                (filter.takes(&done), filter.takes(&refused)),
                both,
                "{text}"
            );
        }
    }
}
