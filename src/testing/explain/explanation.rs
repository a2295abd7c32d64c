//! What an explanation says.

use std::fmt;

use super::cause::Cause;
use super::hint::Hint;
use super::search::Tried;
use crate::error::VerifyError;

/// Why a delivery was refused, as far as can be found out, or that it is authentic.
///
/// Holds no secret, no MAC and no byte of a body: it can be printed whole.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub(super) error: Option<VerifyError>,
    pub(super) key: Option<String>,
    pub(super) causes: Vec<Cause>,
    pub(super) hints: Vec<Hint>,
    pub(super) tried: Tried,
}

impl Explanation {
    /// Whether the delivery is authentic and fresh as it is, under a secret as it is configured. Then there is no cause.
    #[must_use]
    pub fn is_authentic(&self) -> bool {
        self.error.is_none()
    }

    /// What [`Verifier::verify`](crate::Verifier::verify) says of it. Where several things are wrong, the first that it finds.
    #[must_use]
    pub fn error(&self) -> Option<&VerifyError> {
        self.error.as_ref()
    }

    /// The name of the secret that it was signed with: as it is, or with the repairs that the causes name.
    #[must_use]
    pub fn key_name(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The mistakes that are **proven**: with all of them repaired, and nothing else, the delivery verifies. More than one where
    /// only all together help. Empty where the delivery is authentic, and where none fits.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// What looks wrong and is **not proven**. Empty where the delivery is authentic.
    #[must_use]
    pub fn hints(&self) -> &[Hint] {
        &self.hints
    }

    /// What was tried, until something fitted.
    #[must_use]
    pub fn tried(&self) -> Tried {
        self.tried
    }

    /// Not authentic, and no known mistake explains it: the secret is another one altogether, or the content was altered in a
    /// way that can't be computed back.
    #[must_use]
    pub fn none_fits(&self) -> bool {
        !self.is_authentic() && self.causes.is_empty()
    }

    /// What follows from that, in a sentence.
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

/// For people: the verdict, what is wrong and how to mend it, what looks wrong, what was tried.
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
