//! A body that is being received: hashed as it arrives, and kept up to a limit.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::keyring::KeyRing;
use super::signature::{MacStates, Match, Signature};
use super::verified::{Proof, SignedBytes, Verified};
use super::{VerifyError, VerifyErrorKind};
use crate::scheme::{DeliveryHeaders, Signatures, SignedHead};

/// The largest body that is copied. A frame of HTTP/2 is no larger by default, and hashing takes
/// far longer than the copy.
const MAX_COPIED: usize = 16 << 10;
/// The least size of a buffer for pieces.
const LEAST_BUFFER: usize = 1 << 10;

/// Verifies a body that arrives in chunks: it hashes each chunk under every live key, keeps its
/// bytes up to a limit, and ends in a [`Verified`].
///
/// The age was checked when it was made, by [`Verifier::begin`](crate::Verifier::begin) or a
/// receiver. A body of one chunk is hashed at its end, in one call, and is copied only where it is
/// authentic and no longer than 16 KiB: the kept bytes must not hold the buffer that a server has
/// read them into. No memory is allocated for an announced length.
///
/// ```
/// # use hookgate::{
/// #     Secret, Verifier,
/// #     clock::UnixSeconds,
/// #     verify::{DeliveryHeaders, Signature, Timestamp},
/// # };
/// # let secret = Secret::new("whsec_made_up_for_this_example")?;
/// # let timestamp = Timestamp::parse(b"1763690000")?;
/// # let signature = Signature::sign(&secret, &timestamp, b"in two pieces").to_header_value();
/// # let pairs = [("x-service-timestamp", "1763690000"), ("x-service-signature", signature.as_str())];
/// # let verifier = Verifier::new(secret);
/// let head = DeliveryHeaders::from_pairs(pairs)?;
/// let mut body = verifier.begin(&head, UnixSeconds::new(1_763_690_000), 1 << 20)?;
/// for chunk in ["in two ", "pieces"] {
///     body.push(chunk.into())?;
/// }
/// let verified = body.finish()?;
/// assert_eq!(verified.body(), b"in two pieces");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a body is authentic only once `finish` has returned its bytes"]
pub struct BodyVerifier {
    ring: Arc<KeyRing>,
    head: SignedHead,
    signatures: Signatures,
    received: Received,
    /// The number of bytes received so far.
    length: usize,
    limit: usize,
}

enum Received {
    Nothing,
    /// Not hashed yet.
    OneChunk(Bytes),
    /// All of it is hashed.
    Chunks {
        bytes: Vec<u8>,
        macs: MacStates,
    },
}

/// The body grew past the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is longer than {limit} bytes")]
pub struct BodyTooLarge {
    limit: usize,
}

impl BodyTooLarge {
    /// The greatest number of bytes accepted.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl BodyVerifier {
    /// Begins with the ring of the delivery. The body may have `limit` bytes at most; exactly
    /// `limit` is accepted.
    pub(crate) fn new(ring: Arc<KeyRing>, head: DeliveryHeaders<'_>, limit: usize) -> Self {
        Self {
            ring,
            head: head.signed,
            signatures: head.signatures,
            received: Received::Nothing,
            length: 0,
            limit,
        }
    }

    /// Takes the next chunk.
    ///
    /// # Errors
    /// The body is longer than the limit. The chunk was not taken: drop the verifier and stop
    /// reading.
    pub fn push(&mut self, chunk: Bytes) -> Result<(), BodyTooLarge> {
        self.check_room(chunk.len())?;
        if chunk.is_empty() {
            return Ok(());
        }
        self.detach();
        self.length += chunk.len();
        match &mut self.received {
            Received::Chunks { bytes, macs } => {
                if self.length > bytes.capacity() {
                    let size = buffer_size(self.length, self.limit);
                    bytes.reserve_exact(size - bytes.len());
                }
                bytes.extend_from_slice(&chunk);
                macs.update(&chunk);
            }
            _ => self.received = Received::OneChunk(chunk),
        }
        Ok(())
    }

    /// Compares the signature with the MAC of every live key, and returns the bytes with their
    /// proof.
    ///
    /// # Errors
    /// `SignatureMismatch`, `KeyEnded` or `UnknownSubscription`.
    pub fn finish(self) -> Result<Verified<Bytes>, VerifyError> {
        let is_of_server = matches!(self.received, Received::OneChunk(_));
        let (ring, head, signatures) = (&self.ring, &self.head, &self.signatures);
        let of_whole = |body: &[u8]| ring.matched(head, signatures, ring.tags(head, body));
        let (body, matched) = match self.received {
            Received::Nothing => (Bytes::new(), of_whole(&[])),
            Received::OneChunk(chunk) => {
                let matched = of_whole(&chunk);
                (chunk, matched)
            }
            // A boxed slice has no unused room: the handler may keep the bytes for long.
            Received::Chunks { bytes, macs } => {
                let matched = ring.matched(head, signatures, macs.tags());
                (Bytes::from(bytes.into_boxed_slice()), matched)
            }
        };
        let proof = self.ring.verdict(self.head, &self.signatures, matched)?;
        // The size of a server's buffer is unknown. It is 8 KiB and more, so that a hundred bytes
        // may hold a hundred times as many.
        let body = match is_of_server && body.len() <= MAX_COPIED {
            true => Bytes::copy_from_slice(&body),
            false => body,
        };
        Ok(Verified::new(proof, body))
    }

    /// Checks that the body may grow by this many bytes.
    pub(crate) fn check_room(&self, more: usize) -> Result<(), BodyTooLarge> {
        if more > self.limit - self.length {
            return Err(BodyTooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Returns the size of the body's buffer with this many more bytes.
    pub(crate) fn buffer_size_with(&self, more: usize) -> usize {
        buffer_size(self.length.saturating_add(more), self.limit)
    }

    /// Copies and hashes a first chunk, so that it no longer holds the buffer that the server has
    /// read it into.
    pub(crate) fn detach(&mut self) {
        if let Received::OneChunk(chunk) = &self.received {
            let mut macs = MacStates::new(&self.ring.keys, &self.head);
            macs.update(chunk);
            let mut bytes = Vec::with_capacity(buffer_size(chunk.len(), self.limit));
            bytes.extend_from_slice(chunk);
            self.received = Received::Chunks { bytes, macs };
        }
    }

    /// Returns the number of bytes received so far.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Returns the bytes received so far, which are not verified. Copies a body of several chunks.
    pub(crate) fn unverified(&self) -> Bytes {
        match &self.received {
            Received::Nothing => Bytes::new(),
            Received::OneChunk(chunk) => chunk.clone(),
            Received::Chunks { bytes, .. } => Bytes::copy_from_slice(bytes),
        }
    }

    /// Returns the number of MACs that are computed as chunks arrive.
    #[cfg(test)]
    pub(crate) fn mac_count(&self) -> usize {
        match &self.received {
            Received::Chunks { macs, .. } => macs.count(),
            _ => 0,
        }
    }
}

impl KeyRing {
    /// Verifies a whole body, of any age. The proof owns or borrows the very bytes that it covers.
    pub(crate) fn verify<B: SignedBytes>(
        self: Arc<Self>,
        head: SignedHead,
        signatures: &Signatures,
        body: B,
    ) -> Result<Verified<B>, VerifyError> {
        let tags = self.tags(&head, body.as_ref());
        let matched = self.matched(&head, signatures, tags);
        let proof = self.verdict(head, signatures, matched)?;
        Ok(Verified::new(proof, body))
    }

    /// Returns the proof of the key that matched, if that makes the delivery authentic.
    fn verdict(
        self: Arc<Self>,
        head: SignedHead,
        signatures: &Signatures,
        matched: Option<Match>,
    ) -> Result<Proof, VerifyError> {
        let kind = match matched {
            _ if self.is_decoy => VerifyErrorKind::UnknownSubscription,
            Some(found) if self.has_ended(found.key, &head) => VerifyErrorKind::KeyEnded,
            Some(found) => {
                let signature = signatures.get(found.signature).map(Signature::of_bytes);
                return Ok(Proof::new(head, signature, self, found.key));
            }
            None => VerifyErrorKind::SignatureMismatch,
        };
        Err(VerifyError::new(kind))
    }
}

/// Returns the size of a buffer for this many bytes of a body of at most `limit`. Sizes are powers
/// of two, so that a body in many chunks is seldom copied, but no more than the limit.
fn buffer_size(length: usize, limit: usize) -> usize {
    let size = length.checked_next_power_of_two().unwrap_or(limit);
    size.max(LEAST_BUFFER).min(limit)
}

/// Shows the length in place of the body, which holds names and e-mail addresses.
impl fmt::Debug for BodyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyVerifier")
            .field("timestamp", &self.head.timestamp)
            .field("body_bytes", &self.length)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixSeconds;
    use crate::lookup::Verifier;
    use crate::verify::{Secret, Timestamp};

    const NOW: i64 = 1_763_690_000;

    fn begun(body: &[u8], limit: usize) -> BodyVerifier {
        let secret = Secret::new("whsec_made_up_for_this_test").unwrap();
        let timestamp = Timestamp::at(UnixSeconds::new(NOW)).unwrap();
        let signature = Signature::sign(&secret, &timestamp, body).to_header_value();
        let pairs = [
            ("x-service-timestamp", timestamp.as_str()),
            ("x-service-signature", &signature),
        ];
        let head = DeliveryHeaders::from_pairs(pairs).unwrap();
        let verifier = Verifier::new(secret);
        verifier.begin(&head, UnixSeconds::new(NOW), limit).unwrap()
    }

    #[test]
    fn a_body_is_taken_up_to_its_limit_and_only_its_length_is_shown() {
        let mut body = begun(b"abcdefg", 7);
        for (chunk, length) in [("abc", 3), ("", 3), ("def", 6), ("g", 7)] {
            body.push(chunk.into()).unwrap();
            let shown = format!("{body:?}");
            let expected = format!("body_bytes: {length}, limit: 7, .. }}");
            assert!(shown.contains(&expected), "{shown}");
            assert!(!shown.contains("abc"), "{shown}");
        }
        let error = body.push(Bytes::from_static(b"h")).unwrap_err();
        assert_eq!(error.limit(), 7);
        assert!(body.push(Bytes::new()).is_ok());
        assert_eq!(body.finish().unwrap().body(), b"abcdefg");
    }

    // fault F10e: a small delivery that is kept keeps the server's read buffer alive
    #[test]
    fn a_small_body_leaves_the_servers_buffer_and_a_large_one_stays() {
        let buffer: Vec<u8> = (0..20_000_u32).flat_map(u32::to_le_bytes).collect();
        for length in [1, 300, MAX_COPIED - 1, MAX_COPIED, MAX_COPIED + 1, 70_000] {
            let whole = Bytes::from(buffer.clone());
            let mut body = begun(&buffer[..length], length);
            body.push(whole.slice(..length)).unwrap();
            let verified = body.finish().unwrap();
            assert_eq!(verified.body(), &buffer[..length]);
            assert_eq!(whole.is_unique(), length <= MAX_COPIED, "{length}");
        }
    }

    #[test]
    fn the_buffer_of_chunks_is_no_larger_than_what_is_said_beforehand() {
        for limit in [1, 700, 1_024, 5_000] {
            let whole = vec![b'x'; limit];
            let mut body = begun(&whole, limit);
            for chunk in whole.chunks(7) {
                let said = body.buffer_size_with(chunk.len());
                body.push(Bytes::copy_from_slice(chunk)).unwrap();
                if let Received::Chunks { bytes, .. } = &body.received {
                    assert!(bytes.len() <= said && bytes.capacity() == said && said <= limit);
                }
            }
            assert_eq!(body.finish().unwrap().body(), whole);
        }
    }
}
