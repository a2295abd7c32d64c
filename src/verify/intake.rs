//! A body that is being received: hashed as it arrives, and kept.

use std::fmt;

use bytes::Bytes;

use super::check::{Check, Unproven};
use super::error::{VerifyError, VerifyErrorKind};
use super::gathered::SharedBuffer;
use super::gathered::room_for;
use super::signature::Macs;
use super::verified::Verified;

/// The largest body that is copied. A frame of HTTP/2 is no larger by default, and hashing takes far longer than the copy.
const MAX_COPIED: usize = 16 << 10;

/// Takes a body chunk by chunk, hashes it and keeps it, up to a limit. A body of one chunk is hashed at its end, in one call.
///
/// A [`Check`] hashes bytes that its caller keeps; an intake keeps them itself and so can end in a [`Verified`]. It can be moved at
/// any time: the keys' states are in a box, which is wiped. A body
/// of one chunk is copied only where it is authentic and no longer than 16 KiB: the kept bytes must not hold the buffer that a
/// server has read them into. No memory is allocated for an announced length: a body uses memory only for the bytes that arrived.
pub struct Intake {
    unproven: Unproven,
    /// Once a piece was hashed.
    macs: Option<Box<Macs>>,
    chunks: Chunks,
    /// The number of bytes taken so far.
    taken: usize,
    limit: usize,
}

enum Chunks {
    Nothing,
    /// Hashed once there is a second one, or at the end.
    One(Bytes),
    /// All of them are hashed.
    Many(SharedBuffer),
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

    /// The greatest number of bytes accepted.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Intake {
    /// Returns an intake that keeps at most `limit` bytes; exactly `limit` is accepted.
    #[must_use]
    #[inline]
    pub fn new(check: Check, limit: usize) -> Self {
        Self::of(check.into_unproven(), limit)
    }

    #[inline]
    pub(crate) fn of(unproven: Unproven, limit: usize) -> Self {
        Self {
            unproven,
            macs: None,
            chunks: Chunks::Nothing,
            taken: 0,
            limit,
        }
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// The body is longer than the limit. The chunk was not taken: drop the intake and stop reading.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), BodyTooLarge> {
        self.admits(chunk.len())?;
        if chunk.is_empty() {
            return Ok(());
        }
        self.taken += chunk.len();
        if matches!(self.chunks, Chunks::One(_)) {
            self.gather_in(&SharedBuffer::default());
        }
        match &self.chunks {
            Chunks::Many(gathered) => {
                gathered.add(&chunk, self.limit);
                self.hash(&chunk);
            }
            _ => self.chunks = Chunks::One(chunk),
        }
        Ok(())
    }

    /// Checks that the body may grow by this many bytes.
    pub(crate) fn admits(&self, more: usize) -> Result<(), BodyTooLarge> {
        if more > self.limit.saturating_sub(self.taken) {
            return Err(BodyTooLarge::new(self.limit));
        }
        Ok(())
    }

    /// Keeps the bytes taken so far, and the later ones, in this buffer, unless there is one already. After this, the chunk that
    /// was taken no longer holds the buffer that the server has read it into.
    pub(crate) fn gather_in(&mut self, gathered: &SharedBuffer) {
        match &self.chunks {
            Chunks::Nothing => {}
            Chunks::One(first) => {
                gathered.add(first, self.limit);
                let first = first.clone();
                self.hash(&first);
            }
            Chunks::Many(_) => return,
        }
        self.chunks = Chunks::Many(gathered.clone());
    }

    fn hash(&mut self, piece: &[u8]) {
        let macs = self.macs.get_or_insert_with(|| Box::new(Macs::new()));
        self.unproven.hash(macs, piece);
    }

    /// Returns the memory that the buffer of the body takes with this many more bytes.
    pub(crate) fn room_with(&self, more: usize) -> usize {
        room_for(self.taken.saturating_add(more).min(self.limit), self.limit)
    }

    /// Returns the bytes taken so far. The first call after the last chunk copies nothing, and neither does any other.
    pub(crate) fn bytes(&mut self) -> Bytes {
        if let Chunks::Many(gathered) = &self.chunks
            && let Some(bytes) = gathered.take()
        {
            self.chunks = Chunks::One(bytes.into());
        }
        match &self.chunks {
            Chunks::One(bytes) => bytes.clone(),
            Chunks::Nothing | Chunks::Many(_) => Bytes::new(),
        }
    }

    /// Returns the number of bytes taken so far.
    pub(crate) fn taken(&self) -> usize {
        self.taken
    }

    /// Compares the signature, and returns the bytes with their proof.
    ///
    /// # Errors
    /// As [`Check::finish`].
    pub fn finish(mut self) -> Result<Verified<Bytes>, VerifyError> {
        let (body, is_of_server) = match self.chunks {
            Chunks::Nothing => (Bytes::new(), false),
            Chunks::One(only) => (only, true),
            // A freed buffer ends its reader, which then does not call this. If it did, there would be no bytes to prove.
            Chunks::Many(gathered) => match gathered.take() {
                Some(bytes) => (bytes.into(), false),
                None => return Err(VerifyError::new(VerifyErrorKind::SignatureMismatch)),
            },
        };
        let proof = self.unproven.prove(self.macs.as_deref_mut(), &body)?;
        let body = if is_of_server { by_itself(body) } else { body };
        Ok(Verified::new(proof, body))
    }
}

/// Shows the length in place of the body, which holds names and e-mail addresses.
impl fmt::Debug for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Intake")
            .field("body_bytes", &self.taken)
            .field("limit", &self.limit)
            .finish()
    }
}

/// Returns the same bytes; if they are few, they share no memory with other bytes.
///
/// The size of the buffer behind some bytes is unknown. A server's has 8 KiB and more, so that a hundred bytes may hold a hundred
/// times as many.
fn by_itself(bytes: Bytes) -> Bytes {
    match bytes.len() {
        0 => Bytes::new(),
        1..=128 => inline::<128>(&bytes),
        129..=256 => inline::<256>(&bytes),
        257..=384 => inline::<384>(&bytes),
        385..=512 => inline::<512>(&bytes),
        513..=768 => inline::<768>(&bytes),
        769..=1_024 => inline::<1_024>(&bytes),
        1_025..=2_048 => inline::<2_048>(&bytes),
        2_049..=4_096 => inline::<4_096>(&bytes),
        4_097..=MAX_COPIED => Bytes::copy_from_slice(&bytes),
        _ => bytes,
    }
}

/// Returns a copy that is one allocation with the count of its owners. `Bytes` makes two of a vector as soon as it is shared. The
/// length is kept in `Bytes` alone: with it, 1 KiB would be 1,040 bytes, and glibc keeps freed memory at hand up to 1,032.
fn inline<const ROOM: usize>(bytes: &[u8]) -> Bytes {
    let mut room = [0; ROOM];
    let length = bytes.len().min(ROOM);
    room[..length].copy_from_slice(&bytes[..length]);
    let mut copy = Bytes::from_owner(room);
    copy.truncate(length);
    copy
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixSeconds;
    use crate::lookup::Verifier;
    use crate::verify::{DeliveryHeaders, Secret};

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

    #[test]
    fn few_bytes_leave_their_buffer_and_many_stay() {
        let buffer: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        for length in (0..=5_000).chain([MAX_COPIED - 1, MAX_COPIED, MAX_COPIED + 1, 70_000]) {
            let whole = Bytes::from(buffer.clone());
            let kept = by_itself(whole.slice(..length));
            assert_eq!(kept, buffer[..length]);
            assert_eq!(whole.is_unique(), length <= MAX_COPIED, "{length}");
        }
    }
}
