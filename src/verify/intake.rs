//! A body on its way in: hashed as it arrives, and kept.

use std::fmt;

use bytes::{Bytes, BytesMut};

use super::{Check, Verified};
use crate::error::VerifyError;

/// Takes a body chunk by chunk, hashes it and keeps it, up to a limit.
///
/// A [`Check`] hashes bytes that its caller keeps; an intake keeps them itself and so can end in a [`Verified`]. A body
/// of one chunk is never copied. Nothing is allocated from an announced length: a body costs what has arrived of it.
pub struct Intake {
    check: Check,
    kept: Kept,
    limit: usize,
}

enum Kept {
    Nothing,
    One(Bytes),
    Many(BytesMut),
}

/// The body grew past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is longer than {limit} bytes")]
pub struct BodyTooLarge {
    limit: usize,
}

impl BodyTooLarge {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit }
    }

    /// The most bytes that are accepted.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Intake {
    /// Keeps at most `limit` bytes; exactly `limit` is accepted.
    #[must_use]
    #[inline]
    pub fn new(check: Check, limit: usize) -> Self {
        Self {
            check,
            kept: Kept::Nothing,
            limit,
        }
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// The body is longer than the limit. The chunk was not taken: drop the intake and stop reading.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), BodyTooLarge> {
        if chunk.len() > self.limit.saturating_sub(self.kept.len()) {
            return Err(BodyTooLarge::new(self.limit));
        }
        if chunk.is_empty() {
            return Ok(());
        }
        self.check.update(&chunk);
        self.kept = match std::mem::replace(&mut self.kept, Kept::Nothing) {
            Kept::Nothing => Kept::One(chunk),
            Kept::One(first) => {
                let mut buffer = BytesMut::with_capacity(first.len() + chunk.len());
                buffer.extend_from_slice(&first);
                buffer.extend_from_slice(&chunk);
                Kept::Many(buffer)
            }
            Kept::Many(mut buffer) => {
                buffer.extend_from_slice(&chunk);
                Kept::Many(buffer)
            }
        };
        Ok(())
    }

    /// What the intake will end in whatever comes, where it was begun on a stale delivery.
    #[cfg(feature = "tower")]
    pub(crate) fn stale(&self) -> Option<VerifyError> {
        self.check.stale()
    }

    /// The bytes that were taken so far. The first call after the last chunk copies nothing, and neither does any other.
    #[cfg(feature = "testing")]
    pub(crate) fn bytes(&mut self) -> Bytes {
        self.kept = Kept::One(std::mem::replace(&mut self.kept, Kept::Nothing).into_bytes());
        match &self.kept {
            Kept::One(bytes) => bytes.clone(),
            Kept::Nothing | Kept::Many(_) => Bytes::new(),
        }
    }

    /// How many bytes were taken so far.
    #[cfg(feature = "testing")]
    pub(crate) fn taken(&self) -> usize {
        self.kept.len()
    }

    /// Compares, and hands out the bytes with their proof.
    ///
    /// # Errors
    /// As [`Check::finish`].
    pub fn finish(self) -> Result<Verified<Bytes>, VerifyError> {
        let proof = self.check.finish()?;
        Ok(Verified::vouch(proof, self.kept.into_bytes()))
    }
}

impl Kept {
    fn into_bytes(self) -> Bytes {
        match self {
            Self::Nothing => Bytes::new(),
            Self::One(only) => only,
            Self::Many(buffer) => buffer.freeze(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::One(only) => only.len(),
            Self::Many(buffer) => buffer.len(),
        }
    }
}

/// The length stands for the body: it holds names and e-mail addresses.
impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake")
            .field("check", &self.check)
            .field("body_bytes", &self.kept.len())
            .field("limit", &self.limit)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnixSeconds;
    use crate::verify::{DeliveryHeaders, Secret, Verifier};

    #[test]
    fn an_intake_takes_its_limit_and_says_what_it_has() {
        let signature = format!("sha256={}", "0".repeat(64));
        let pairs = [
            ("x-service-timestamp", "1763690000"),
            ("x-service-signature", &signature),
        ];
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verifier = Verifier::new(Secret::new("whsec_made_up_for_this_test").unwrap());
        let check = verifier.begin(&head, UnixSeconds::new(1_763_690_000));
        let mut intake = Intake::new(check.unwrap(), 7);
        for (chunk, kept) in [("abc", 3), ("", 3), ("def", 6), ("g", 7)] {
            intake.push(Bytes::from_static(chunk.as_bytes())).unwrap();
            let shown = format!("{intake:?}");
            assert!(
                shown.contains(&format!("body_bytes: {kept}, limit: 7")),
                "{shown}"
            );
            assert!(!shown.contains("abc"), "{shown}");
        }
        let error = intake.push(Bytes::from_static(b"h")).unwrap_err();
        assert_eq!(error.limit(), 7);
        assert!(intake.push(Bytes::new()).is_ok());
    }
}
