//! Mistakes of a request that the signature does not cover: method, encoding, type, size, and the
//! unsigned headers.
//!
//! A receiver finds them: the delivery is signed anew, so that only these mistakes are left, and
//! repaired until the receiver accepts it.

use bytes::Bytes;
use hookgate::{
    KeyRing, Refusal, Scheme,
    clock::UnixSeconds,
    outcome::RefusalKind,
    verify::{VerifyErrorKind, Window},
};
use hookgate_record::LoggedDelivery;

use super::cause::{Cause, CauseKind as Kind};
use crate::log::LoggedDeliveryExt;
use crate::signer::made_up;

/// Any time that can be signed: the receiver's clock is set to it.
const MOMENT: UnixSeconds = UnixSeconds::new(1_763_690_000);

/// A mistake, and the refusal that it leads to.
pub(super) struct RequestFault {
    pub(super) cause: Cause,
    pub(super) refusal: Refusal,
}

impl RequestFault {
    /// Whether a receiver refuses it before it reads the body and checks the headers of the
    /// signature: the size only where it was announced.
    pub(super) fn is_of_head(&self, announced: Option<usize>) -> bool {
        let is_of_head = matches!(
            self.refusal.kind(),
            RefusalKind::MethodNotAllowed | RefusalKind::MediaNotSupported
        );
        is_of_head || (self.is_of_size() && announced.is_some())
    }

    pub(super) fn is_of_size(&self) -> bool {
        self.refusal.kind() == RefusalKind::BodyTooLarge
    }
}

/// Returns every mistake of the request, in the order in which a receiver finds them. Without a
/// body, those of the head.
pub(super) fn faults(
    scheme: Scheme,
    delivery: &LoggedDelivery,
    body: Option<Bytes>,
) -> Vec<RequestFault> {
    let (signer, secret) = made_up();
    let signer = signer.scheme(scheme);
    let is_read = body.is_some();
    let mut delivery = delivery.clone();
    delivery.body = Some(body.unwrap_or_default());
    let Some(mut delivery) = delivery.resigned(&signer.at(MOMENT)) else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    let verdict = |delivery: &LoggedDelivery| {
        delivery.verdict_by(scheme, KeyRing::new(secret.clone()), Window::default())
    };
    // Each repair removes the reason of a refusal, so that there are fewer turns than reasons.
    while let Ok(Err(refusal)) = verdict(&delivery) {
        let Some(cause) = repair(&scheme, &mut delivery, &refusal) else {
            break;
        };
        let is_unread = matches!(cause.kind(), Kind::EventUnusable | Kind::EventHeader) && !is_read;
        let is_last = matches!(cause.kind(), Kind::EventUnusable | Kind::RequestTooLarge);
        if !is_unread {
            faults.push(RequestFault { cause, refusal });
        }
        if is_last {
            break;
        }
    }
    faults
}

/// Repairs what the receiver refuses, if it can be repaired. `None` for what is not a mistake of
/// the request.
fn repair(scheme: &Scheme, delivery: &mut LoggedDelivery, refusal: &Refusal) -> Option<Cause> {
    let without = |delivery: &mut LoggedDelivery, name: &str| {
        delivery.headers.retain(|(other, _)| other != name);
    };
    // The source of a refusal names the header, where several headers have one kind.
    let source = std::error::Error::source(refusal).map(ToString::to_string);
    let is_about = |header: &str| source.as_ref().is_some_and(|text| text.starts_with(header));
    let kind = match refusal.kind() {
        RefusalKind::MethodNotAllowed => {
            delivery.method = "POST".into();
            Kind::RequestMethod
        }
        RefusalKind::MediaNotSupported if is_about("content-encoding") => {
            without(delivery, "content-encoding");
            Kind::RequestEncoding
        }
        RefusalKind::MediaNotSupported => {
            without(delivery, "content-type");
            Kind::RequestType
        }
        RefusalKind::BodyTooLarge => Kind::RequestTooLarge,
        RefusalKind::UnusableEvent => {
            let reason = std::error::Error::source(refusal).map(ToString::to_string);
            return Some(match reason {
                Some(reason) => Cause::with(Kind::EventUnusable, reason),
                None => Cause::new(Kind::EventUnusable),
            });
        }
        RefusalKind::HeaderDiffers => {
            let mut hints = scheme.hint_headers().into_iter().flatten();
            let name = hints.find(|name| is_about(name))?;
            without(delivery, name);
            return Some(Cause::with(Kind::EventHeader, name));
        }
        _ => {
            let VerifyErrorKind::HeaderRepeated(name) = refusal.verify_error()?.kind() else {
                return None;
            };
            let first = delivery.header(name).cloned();
            without(delivery, name);
            let first = first.map(|value| (name.to_owned(), value));
            delivery.headers.extend(first);
            return Some(Cause::with(Kind::HeaderRepeated, name));
        }
    };
    Some(Cause::new(kind))
}
