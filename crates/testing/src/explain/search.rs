//! Tries repairs until a delivery verifies: no repair first, then one, then up to four together.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;

use bytes::Bytes;
use hookgate::clock::UnixSeconds;

use super::body::Bodies;
use super::cause::Cause;
use super::header::Claim;
use super::secret::KeyVariant;
use super::signed::SignedString;

/// The highest number of repairs that are tried together, besides those of the headers.
const FURTHEST: usize = 4;

/// The numbers of the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tried {
    /// The keys, those as configured included.
    pub secrets: usize,
    /// The bodies with different bytes, the received one included.
    pub bodies: usize,
    /// The ways to put timestamp and body together, the right one included.
    pub signed_strings: usize,
    /// The signatures that were found in the headers.
    pub signatures: usize,
    /// The combinations of those: each is one HMAC.
    pub combinations: u64,
    /// The bytes that were hashed or written for it.
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
    pub(super) keys: &'s [KeyVariant],
    pub(super) signed: Vec<SignedString>,
    pub(super) claims: &'s [Claim],
    pub(super) bodies: &'s Bodies<'s>,
    /// The highest number of bytes that may be hashed or written.
    pub(super) limit: u64,
}

impl Search<'_> {
    pub(super) fn run(self) -> (Option<Fit>, Tried) {
        let mut tried = Tried {
            secrets: self.keys.len(),
            signed_strings: self.signed.len(),
            signatures: self.claims.len(),
            ..Tried::default()
        };
        let claimed: Vec<_> = self.claims.iter().map(|claim| claim.signature).collect();
        let mut fit = None;
        if !claimed.is_empty() {
            for repairs in 0..=FURTHEST {
                if self.at(repairs, &claimed, &mut tried, &mut fit).is_break() {
                    break;
                }
            }
        }
        (fit, tried)
    }

    /// Tries all combinations at this number of repairs.
    fn at(
        &self,
        repairs: usize,
        claimed: &[[u8; 32]],
        tried: &mut Tried,
        fit: &mut Option<Fit>,
    ) -> ControlFlow<()> {
        let mut seen = HashSet::new();
        for of_body in 0..=repairs {
            self.bodies.each(of_body, &mut |causes, body| {
                tried.bytes = tried.bytes.saturating_add(body.len() as u64);
                if !seen.insert(hash(body)) {
                    return self.within_limit(tried);
                }
                tried.bodies = tried.bodies.max(seen.len());
                let rest = repairs - of_body;
                *fit = self.with_body(rest, causes, body, claimed, tried)?;
                match fit {
                    Some(_) => ControlFlow::Break(()),
                    None => ControlFlow::Continue(()),
                }
            })?;
        }
        ControlFlow::Continue(())
    }

    /// Tries one body, with this number of repairs of secret and signed string. Breaks at the limit.
    fn with_body(
        &self,
        repairs: usize,
        of_body: &[Cause],
        body: &[u8],
        claimed: &[[u8; 32]],
        tried: &mut Tried,
    ) -> ControlFlow<(), Option<Fit>> {
        for key in self.keys {
            let Some(distance) = repairs.checked_sub(key.distance) else {
                continue;
            };
            let signed = self
                .signed
                .iter()
                .filter(|signed| signed.distance == distance);
            for signed in signed {
                let pieces = [&*signed.before, body, &*signed.after];
                let length: usize = pieces.iter().map(|piece| piece.len()).sum();
                tried.combinations += 1;
                // Each HMAC also hashes two blocks of padding and length.
                tried.bytes = tried.bytes.saturating_add(length as u64 + 128);
                if let Some(claim) = key.key.signed(&pieces, claimed) {
                    let of_header = self
                        .claims
                        .get(claim)
                        .map_or(&[][..], |claim| &claim.causes);
                    let causes = [&key.causes, of_body, &signed.causes, of_header].concat();
                    return ControlFlow::Continue(Some(Fit {
                        causes: once_each(causes),
                        name: key.name.clone(),
                        at: signed.at,
                        body: Bytes::copy_from_slice(body),
                    }));
                }
                self.within_limit(tried)?;
            }
        }
        ControlFlow::Continue(None)
    }

    fn within_limit(&self, tried: &mut Tried) -> ControlFlow<()> {
        if tried.bytes < self.limit {
            return ControlFlow::Continue(());
        }
        tried.capped = true;
        ControlFlow::Break(())
    }
}

fn once_each(causes: Vec<Cause>) -> Vec<Cause> {
    let mut kept: Vec<Cause> = Vec::new();
    for cause in causes {
        if !kept.contains(&cause) {
            kept.push(cause);
        }
    }
    kept
}

/// Returns a hash that distinguishes bodies. With a collision one body is not tried, but no wrong result follows.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}
