//! The result of an explanation.

use std::fmt;

use super::cause::Cause;
use super::hint::Hint;
use super::search::Tried;
use crate::verify::VerifyError;

/// The reason why a delivery was refused, as far as it can be found, or the statement that it is authentic.
///
/// It holds no secret, no MAC and no byte of a body: all of it can be printed.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub(super) error: Option<VerifyError>,
    pub(super) key: Option<String>,
    pub(super) causes: Vec<Cause>,
    pub(super) hints: Vec<Hint>,
    pub(super) tried: Tried,
}

impl Explanation {
    /// Whether the delivery is authentic and fresh as received, under a secret as configured. Then there is no cause.
    #[must_use]
    pub fn is_authentic(&self) -> bool {
        self.error.is_none()
    }

    /// Returns the error of [`Verifier::verify`](crate::Verifier::verify) for the delivery. Where it has several faults, the
    /// first one found.
    #[must_use]
    pub fn error(&self) -> Option<&VerifyError> {
        self.error.as_ref()
    }

    /// Returns the name of the secret that signed the delivery, as received or with the repairs that the causes name.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// Returns the mistakes that are **proven**: with all of them repaired, and no other change, the delivery verifies. There is
    /// more than one where only all of them together help. Empty where the delivery is authentic, and where no known mistake
    /// fits.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// Returns the signs that are **not proven**. Empty where the delivery is authentic.
    #[must_use]
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// Returns the numbers of the keys, bodies and combinations that were tried until one fitted.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.tried
    }

    /// Whether the delivery is not authentic and no known mistake explains it: the secret is a different one, or the content was
    /// changed in a way that can't be undone.
    #[must_use]
    pub fn none_fits(&self) -> bool {
        !self.is_authentic() && self.causes.is_empty()
    }

    /// Returns the conclusion, in one sentence.
    #[must_use]
    pub fn conclusion(&self) -> String {
        let key = self.key.as_deref().unwrap_or_default();
        match (self.is_authentic(), self.causes.len()) {
            (true, _) => format!("authentic and fresh, signed with {key}"),
            (false, 0) if self.tried.signatures == 0 => {
                "not authentic: there is no signature to try".to_owned()
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
                format!("one mistake: with it repaired, the delivery verifies under {key}")
            }
            (false, many) => format!(
                "{many} mistakes together: with all of them repaired, the delivery verifies under {key}"
            ),
        }
    }
}

/// For people: the verdict, each mistake and its repair, the signs that are not proven, and the numbers of the search.
impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(error) = &self.error {
            write!(f, "refused: {error}")?;
            let mut below = std::error::Error::source(error);
            while let Some(source) = below {
                write!(f, ": {source}")?;
                below = source.source();
            }
            writeln!(f)?;
        }
        writeln!(f, "{}", self.conclusion())?;
        for cause in &self.causes {
            writeln!(
                f,
                "\n{} ({})",
                cause.kind().name(),
                cause.kind().group().name()
            )?;
            writeln!(f, "  what   {cause}")?;
            writeln!(f, "  mend   {}", cause.kind().mend())?;
        }
        for hint in &self.hints {
            writeln!(f, "\nnot proven: {}\n  {hint}", hint.kind().name())?;
        }
        if !self.is_authentic() {
            let tried = &self.tried;
            write!(
                f,
                "\ntried: {} keys, {} bodies, {} signed strings, {} signatures in the headers; {} combinations",
                tried.secrets,
                tried.bodies,
                tried.signed_strings,
                tried.signatures,
                tried.combinations
            )?;
        }
        Ok(())
    }
}
