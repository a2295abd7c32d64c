//! The result of an explanation.

use std::error::Error;
use std::fmt;

use hookgate::{Refusal, event::EventError, outcome::Failure};
use hookgate_record::LoggedAnswer;

use super::cause::Cause;
use super::hint::{Hint, HintKind};
use super::search::Tried;
use crate::messages::chain;

/// The reason why a delivery was refused, as far as it can be found, or the statement that it is
/// authentic.
///
/// It holds no secret, no MAC and no value of a body: all of it can be printed.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub(super) refusal: Option<Refusal>,
    pub(super) answer: Option<LoggedAnswer>,
    pub(super) has_body: bool,
    /// Whether its scheme signs a time, so that an age was checked.
    pub(super) has_timestamp: bool,
    pub(super) key: Option<String>,
    pub(super) causes: Vec<Cause>,
    pub(super) hints: Vec<Hint>,
    pub(super) event_error: Option<EventError>,
    pub(super) tried: Tried,
}

impl Explanation {
    /// Whether a receiver with these secrets accepts the delivery as received: it is authentic and
    /// fresh, and method, type, encoding, event and headers are right. Then there is no cause.
    #[must_use]
    pub fn is_authentic(&self) -> bool {
        self.refusal.is_none()
    }

    /// Returns the refusal of a receiver. Where the delivery has several faults, the first one that
    /// a receiver finds. Its source, a [`VerifyError`](hookgate::verify::VerifyError), says why a
    /// delivery is not authentic or not fresh.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        self.refusal.as_ref()
    }

    /// Returns the answer that the log has for the delivery.
    #[must_use]
    pub fn logged_answer(&self) -> Option<&LoggedAnswer> {
        self.answer.as_ref()
    }

    /// Returns the name of the secret that signed the delivery, as received or with the repairs
    /// that the causes name.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the mistakes that are **proven**: with all of them repaired, and no other change,
    /// the delivery verifies. There is more than one where only all of them together help. Empty
    /// where the delivery is authentic, and where no known mistake fits.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Returns the signs that are **not proven**. Empty where the delivery is authentic.
    #[must_use]
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Returns the reason why a handler that takes [`Event`](hookgate::Event) answers 422 to this
    /// authentic delivery. It is no refusal, since other handlers may take it.
    #[must_use]
    pub fn event_error(&self) -> Option<&EventError> {
        self.event_error.as_ref()
    }

    /// Returns the numbers of the keys, bodies and combinations that were tried until one fitted.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.tried
    }

    /// Whether the delivery is not authentic and no known mistake explains it: the secret is a
    /// different one, or the content was changed in a way that can't be undone.
    #[must_use]
    pub fn none_fits(&self) -> bool {
        !self.is_authentic() && self.causes.is_empty()
    }

    /// Whether the receiver itself, and not its handler, refused the delivery, as the log says.
    fn was_refused(&self) -> bool {
        let of_handler = [
            Failure::Status(0),
            Failure::TypeMismatch,
            Failure::Unhandled,
        ];
        self.answer.as_ref().is_some_and(|answer| {
            (400..500).contains(&answer.status)
                && of_handler
                    .iter()
                    .all(|failure| answer.outcome != failure.name())
        })
    }

    /// Returns the conclusion, in one sentence.
    #[must_use]
    pub fn conclusion(&self) -> String {
        let key = self.key.as_deref().unwrap_or_default();
        match (self.is_authentic(), self.causes.len()) {
            (true, _) if self.was_refused() => format!(
                "signed with {key}, and nothing is wrong with it here; but its receiver refused it, so that one has another secret, \
                 window, clock or setting"
            ),
            (true, _) if self.has_timestamp => format!("authentic and fresh, signed with {key}"),
            (true, _) => format!("authentic, signed with {key}, at a time that it does not say"),
            (false, 0) if !self.has_body => {
                "not accepted; its body was not recorded, so the signature can't be judged"
                    .to_owned()
            }
            (false, 0) if self.tried.signatures == 0 => {
                "not authentic: there is no signature to try".to_owned()
            }
            (false, 0) if self.hints.iter().any(|hint| hint.kind() == HintKind::Redacted) => {
                "not accepted; values were removed from it when it was logged, so no secret can fit it and the signature can't be \
                 judged: explain a delivery that was recorded without redaction of its body"
                    .to_owned()
            }
            (false, 0) => format!(
                "none of {} combinations fits: it was signed with a secret that is not known here, or its content was altered in a \
                 way that can't be undone{}",
                self.tried.combinations,
                if self.tried.capped {
                    "; the limit ended the search early"
                } else {
                    ""
                }
            ),
            (false, 1) => {
                format!("one mistake: with it repaired, the delivery is accepted under {key}")
            }
            (false, many) => format!(
                "{many} mistakes together: with all of them repaired, the delivery is accepted under {key}"
            ),
        }
    }
}

/// The reason of a refusal, with its sources.
fn reason(refusal: &Refusal) -> String {
    // For a delivery that is not authentic, the source says all.
    let first: &dyn Error = match refusal.verify_error() {
        Some(error) => error,
        None => refusal,
    };
    without_outcome(&chain(first)).to_owned()
}

/// A reason without the parts that repeat its outcome.
fn without_outcome(reason: &str) -> &str {
    let mut text = reason;
    for known in ["delivery refused: ", "not authentic or not fresh: "] {
        text = text.strip_prefix(known).unwrap_or(text);
    }
    text
}

/// For people: the verdict, each mistake and its repair, the signs that are not proven, and the
/// numbers of the search.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(refusal) = &self.refusal {
            writeln!(
                f,
                "refused with {}: {}",
                refusal.kind().status(),
                reason(refusal)
            )?;
        }
        if let Some(answer) = &self.answer {
            write!(
                f,
                "answered, says the log: {} {}",
                answer.status, answer.outcome
            )?;
            match &answer.reason {
                Some(reason) => writeln!(f, ": {}", without_outcome(reason))?,
                None => writeln!(f)?,
            }
        }
        writeln!(f, "{}", self.conclusion())?;
        if let Some(error) = &self.event_error {
            writeln!(
                f,
                "a handler that takes `Event` answers 422: {}",
                chain(error)
            )?;
        }
        for cause in &self.causes {
            writeln!(
                f,
                "\n{} ({})",
                cause.kind().name(),
                cause.kind().group().name()
            )?;
            writeln!(f, "  what   {cause}")?;
            writeln!(f, "  fix    {}", cause.kind().fix())?;
        }
        for hint in &self.hints {
            writeln!(f, "\nnot proven: {}\n  {hint}", hint.kind().name())?;
        }
        if !self.is_authentic() {
            let tried = &self.tried;
            write!(
                f,
                "\ntried: {} keys, {} bodies, {} times, {} signatures in the headers; {} combinations",
                tried.secrets, tried.bodies, tried.timestamps, tried.signatures, tried.combinations
            )?;
        }
        Ok(())
    }
}
