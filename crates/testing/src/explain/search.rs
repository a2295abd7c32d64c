//! Tries repairs until a delivery verifies: no repair first, then one, then one of the body and one
//! of the secret together.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;
use serde::Serialize;

use super::body;
use super::cause::Cause;
use super::header::{Claim, Stamp};
use super::secret::KeyVariant;

/// The numbers of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tried {
    /// The keys, those as configured included.
    #[serde(rename = "keys")]
    pub secrets: usize,
    /// The bodies with different bytes, the received one included.
    pub bodies: usize,
    /// The times that may have been signed, the header's own included.
    pub timestamps: usize,
    /// The signatures that were found in the headers.
    pub signatures: usize,
    /// The combinations of those: each is one HMAC.
    pub combinations: u64,
    /// The bytes that were hashed or written for it.
    #[serde(skip)]
    pub bytes: u64,
    /// Whether the limit of bytes ended the search before all was tried.
    pub capped: bool,
}

/// A combination that verifies.
pub(super) struct Fit {
    pub(super) causes: Vec<Cause>,
    /// The name of the secret.
    pub(super) name: String,
    /// The time at which it was signed, where the headers have one.
    pub(super) at: Option<UnixSeconds>,
    /// The body that was signed.
    pub(super) body: Bytes,
}

pub(super) struct Search<'s> {
    pub(super) keys: &'s [KeyVariant<'s>],
    pub(super) stamps: &'s [Stamp],
    pub(super) claims: &'s [Claim],
    pub(super) body: &'s [u8],
    /// The highest number of bytes that may be hashed or written.
    pub(super) limit: u64,
    pub(super) tried: Tried,
    /// The combination that was found.
    pub(super) fit: Option<Fit>,
}

impl Search<'_> {
    pub(super) fn run(mut self) -> (Option<Fit>, Tried) {
        self.tried = Tried {
            secrets: self.keys.len(),
            timestamps: self.stamps.len(),
            signatures: self.claims.len(),
            bodies: 1,
            ..Tried::default()
        };
        if !self.claims.is_empty() {
            // Broken by a fit or by the limit.
            let _ = self.all();
        }
        (self.fit, self.tried)
    }

    fn all(&mut self) -> ControlFlow<()> {
        // The mistakes of secret and timestamp, which are tried with the received body.
        self.with_body((0, 0), None, self.body)?;
        self.with_body((1, 0), None, self.body)?;
        self.bodies(0)?;
        self.with_body((0, 1), None, self.body)?;
        self.bodies(1)
    }

    /// Tries the bodies with one mistake, with this number of mistakes of the secret.
    fn bodies(&mut self, secrets: usize) -> ControlFlow<()> {
        let mut seen = HashSet::from([hash(self.body)]);
        body::each(self.body, &mut |cause, body| {
            self.tried.bytes = self.tried.bytes.saturating_add(body.len() as u64);
            if !seen.insert(hash(body)) {
                return self.within_limit();
            }
            self.tried.bodies = self.tried.bodies.max(seen.len());
            self.with_body((secrets, 0), Some(&cause), body)
        })
    }

    /// Tries one body, with this number of mistakes of the secret and of the timestamp.
    fn with_body(
        &mut self,
        (secrets, times): (usize, usize),
        of_body: Option<&Cause>,
        body: &[u8],
    ) -> ControlFlow<()> {
        let claimed: Vec<_> = self.claims.iter().map(|claim| claim.signature).collect();
        let keys = self.keys.iter().filter(|key| key.distance == secrets);
        for key in keys {
            let stamps = self.stamps.iter();
            for stamp in stamps.filter(|stamp| stamp.distance == times) {
                self.tried.combinations += 1;
                // Each HMAC also hashes two blocks of padding and length.
                let length = stamp.text.len() + 1 + body.len() + 128;
                self.tried.bytes = self.tried.bytes.saturating_add(length as u64);
                if let Some(claim) = key.key.signed(&stamp.text, body, &claimed) {
                    let of_header = self.claims.get(claim).map(|claim| &*claim.causes);
                    let mut causes = key.causes.clone();
                    causes.extend(of_body.cloned());
                    causes.extend_from_slice(&stamp.causes);
                    causes.extend_from_slice(of_header.unwrap_or_default());
                    causes.dedup();
                    self.fit = Some(Fit {
                        causes,
                        name: key.name.clone(),
                        at: stamp.at,
                        body: Bytes::copy_from_slice(body),
                    });
                    return ControlFlow::Break(());
                }
                self.within_limit()?;
            }
        }
        ControlFlow::Continue(())
    }

    fn within_limit(&mut self) -> ControlFlow<()> {
        if self.tried.bytes < self.limit {
            return ControlFlow::Continue(());
        }
        self.tried.capped = true;
        ControlFlow::Break(())
    }
}

/// Returns a hash that distinguishes bodies. With a collision one body is not tried, but no wrong
/// result follows.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
