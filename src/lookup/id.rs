//! The id of a subscription, in the form that may be looked up.

use std::sync::Arc;

use crate::text_id::text_id;
use crate::verify::Malformed;

/// The most bytes after the prefix.
const MAX_TAIL: usize = 64;
const PREFIX: &[u8] = b"wh_";

text_id! {
    /// A subscription's id that may be looked up: `wh_` and 1 to 64 of `A-Z`, `a-z`, `0-9`, `_` and `-`. Cheap to clone.
    ///
    /// # Security
    /// It comes from `X-Service-Webhook-Id`, which is **not signed**: any client can send any id of this form. The form keeps
    /// quotes, wildcards, spaces and control characters out of the text that the provider gets. It gives no other protection.
    ///
    /// ```
    /// use hookgate::lookup::SubscriptionId;
    ///
    /// assert_eq!(SubscriptionId::parse("wh_1-a_B")?.as_str(), "wh_1-a_B");
    /// for other in ["wh_", "wh_a b", "wh_é", "WH_1", "evt_1", &format!("wh_{}", "a".repeat(65))] {
    ///     assert!(SubscriptionId::parse(other).is_err());
    /// }
    /// # Ok::<(), hookgate::verify::Malformed>(())
    /// ```
    SubscriptionId(pub(super) Arc<str>)
}

impl SubscriptionId {
    /// Makes an id from its text.
    ///
    /// # Errors
    /// [`Malformed`] for any other form.
    pub fn parse(text: &str) -> Result<Self, Malformed> {
        as_looked_up(text.as_bytes())
            .map(|id| Self(id.into()))
            .ok_or(Malformed)
    }
}

/// Returns the id in a header, if it has the form that may be looked up.
pub(super) fn as_looked_up(id: &[u8]) -> Option<&str> {
    let tail = id.strip_prefix(PREFIX)?;
    let of_form = (1..=MAX_TAIL).contains(&tail.len())
        && tail
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    of_form.then(|| std::str::from_utf8(id).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_byte_only_sixty_four_may_stand_in_an_id() {
        let mut taken = Vec::new();
        for byte in 0..=u8::MAX {
            let whole = [b"wh_", [byte].as_slice()].concat();
            let inside = [b"wh_a", [byte].as_slice(), b"z"].concat();
            assert_eq!(
                as_looked_up(&whole).is_some(),
                as_looked_up(&inside).is_some()
            );
            taken.extend(as_looked_up(&whole).map(|_| byte));
        }
        let alphabet = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
        assert_eq!(taken, alphabet);
    }

    #[test]
    fn length_and_prefix_are_exact() {
        let long = |tail: usize| format!("wh_{}", "a".repeat(tail));
        for (id, taken) in [
            (long(0), false),
            (long(1), true),
            (long(64), true),
            (long(65), false),
            (long(10_000), false),
            (String::new(), false),
            ("wh".into(), false),
            ("wh-1".into(), false),
            ("Wh_1".into(), false),
            (" wh_1".into(), false),
            ("wh_1 ".into(), false),
            ("wh_1\n".into(), false),
            ("wh_%".into(), false),
            ("wh_1'--".into(), false),
            ("wh_\u{661}".into(), false),
            ("wh_wh_".into(), true),
        ] {
            assert_eq!(as_looked_up(id.as_bytes()).is_some(), taken, "{id:?}");
            assert_eq!(SubscriptionId::parse(&id).is_ok(), taken, "{id:?}");
        }
        assert!(as_looked_up(b"wh_\xff\xfe").is_none());
    }
}
