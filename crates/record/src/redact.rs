//! Removes values from an entry before it is kept.

use std::borrow::Cow;

use bytes::Bytes;
use hookgate::Scheme;

use crate::entry::LoggedDelivery;
use crate::redaction::{REDACTED, Redaction, is_credential};
use crate::scan::redact_body;

/// Full names of parameters that are credentials.
const PARAMETERS: [&str; 4] = ["code", "key", "sig", "signature"];

/// Outcomes whose reason was written by the handler, by the service before it, or by a hook.
const OF_THE_APP: [&str; 4] = [
    "handler_status",
    "service_error",
    "dead_lettered",
    "dead_letter_failed",
];

impl LoggedDelivery {
    /// Returns the delivery without the values to remove.
    #[must_use]
    pub fn redacted(mut self, redaction: &Redaction) -> Self {
        for (name, value) in &mut self.headers {
            if redaction.headers.contains(name) {
                *value = Bytes::from_static(REDACTED.as_bytes());
                self.unverifiable |= Scheme::ALL.iter().any(|scheme| scheme.reads(name));
            }
        }
        if let Some(answer) = self.answer.as_mut().filter(|_| redaction.reasons)
            && OF_THE_APP.contains(&&*answer.outcome)
            && let Some(reason) = &mut answer.reason
        {
            REDACTED.clone_into(reason);
        }
        // An answer may repeat what it answers.
        if let Some(answer) = self.answer.as_mut()
            && (redaction.reasons || redaction.is_of_bodies())
        {
            answer.body = None;
            answer.body_bytes = None;
        }
        if let Some(body) = self.body.as_ref().filter(|_| redaction.is_of_bodies()) {
            let left = redact_body(body, redaction);
            if !matches!(left, Some(Cow::Borrowed(_))) {
                self.body = left.map(|left| left.into_owned().into());
                self.unverifiable = true;
            }
        }
        self
    }
}

/// Returns the decoded name of a query parameter: `%74oken` is `token`.
fn percent_decoded(name: &str) -> Cow<'_, str> {
    if !name.contains('%') {
        return name.into();
    }
    let mut decoded = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|_| byte == b'%');
        let of_two = digits.and_then(|digits| hex::decode(digits).ok()?.pop());
        rest = if of_two.is_some() {
            &behind[2..]
        } else {
            behind
        };
        decoded.push(of_two.unwrap_or(byte));
    }
    String::from_utf8_lossy(&decoded).into_owned().into()
}

/// Returns a request's target as it is logged with any setting.
pub(crate) fn target_as_logged(target: &str) -> String {
    let Some((path, query)) = target.split_once('?') else {
        return target.to_owned();
    };
    let parameters = query.split('&').map(|parameter| {
        let name = parameter.split('=').next().unwrap_or_default();
        let lower = percent_decoded(name).to_ascii_lowercase();
        if name.len() < parameter.len() && (is_credential(&lower) || PARAMETERS.contains(&&*lower))
        {
            format!("{name}={REDACTED}")
        } else {
            parameter.to_owned()
        }
    });
    let parameters: Vec<_> = parameters.collect();
    format!("{path}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use hookgate::clock::UnixSeconds;
    use hookgate::verify::{EVENT_ID, EVENT_TYPE, SIGNATURE, TIMESTAMP, WEBHOOK_ID};

    use super::*;

    #[test]
    fn a_delivery_without_a_header_that_its_receiver_reads_is_unverifiable() {
        for (header, expected) in [
            (SIGNATURE, true),
            ("stripe-signature", true),
            ("webhook-id", true),
            ("x-github-event", true),
            ("user-agent", false),
        ] {
            let logged = LoggedDelivery::new(UnixSeconds::new(1), [(header, "1")], "{}");
            let redacted = logged.redacted(&Redaction::new().header(header));
            assert_eq!(redacted.unverifiable, expected, "{header}");
        }
    }

    #[test]
    fn credentials_are_known_by_name_and_what_is_checked_is_none() {
        for name in [
            "authorization",
            "proxy-authorization",
            "cookie",
            "x-api-key",
            "x-amz-security-token",
            "x-goog-iap-jwt-assertion",
            "x-forwarded-access-token",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in [
            EVENT_ID,
            EVENT_TYPE,
            SIGNATURE,
            TIMESTAMP,
            WEBHOOK_ID,
            "stripe-signature",
            "webhook-signature",
            "x-hub-signature-256",
            "content-type",
            "content-length",
            "user-agent",
            "host",
            "x-forwarded-for",
            "traceparent",
        ] {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn the_apps_own_words_go_with_everything_and_ours_stay() {
        use hookgate::{Outcome, outcome::Failure};

        use crate::LoggedAnswer;

        let no_headers: [(&str, &str); 0] = [];
        let body = r#"{"id":"evt_1","type":"row.created"}"#;
        let reason_left = |outcome: &str, redaction: &Redaction| {
            let mut logged = LoggedDelivery::new(UnixSeconds::new(1), no_headers, body);
            let mut answer = LoggedAnswer::new(500, outcome);
            answer.reason = Some("no customer Ada Lovelace".into());
            logged.answer = Some(answer);
            let redacted = logged.redacted(redaction);
            assert!(!redacted.unverifiable);
            redacted.answer.unwrap().reason.unwrap()
        };
        let of_the_app = [
            Outcome::Failed(Failure::Status(500)),
            Outcome::Failed(Failure::ServiceError),
            Outcome::Failed(Failure::DeadLetterFailed),
            Outcome::DeadLettered,
        ];
        for outcome in of_the_app.map(|outcome| outcome.name()) {
            assert_eq!(reason_left(outcome, &Redaction::everything()), REDACTED);
            assert_eq!(reason_left(outcome, &Redaction::new().reasons()), REDACTED);
            assert_ne!(reason_left(outcome, &Redaction::people()), REDACTED);
        }
        for outcome in [
            Outcome::Failed(Failure::TypeMismatch).name(),
            "store_failed",
        ] {
            assert_ne!(reason_left(outcome, &Redaction::everything()), REDACTED);
        }
    }

    #[test]
    fn the_body_of_an_answer_goes_with_values_of_the_body_and_with_reasons() {
        use crate::LoggedAnswer;

        let no_headers: [(&str, &str); 0] = [];
        let body_left = |redaction: &Redaction| {
            let mut logged = LoggedDelivery::new(UnixSeconds::new(1), no_headers, "{}");
            let mut answer = LoggedAnswer::new(500, "handler_status");
            answer.keep_response(&http::Response::new("no customer Ada Lovelace".into()));
            logged.answer = Some(answer);
            logged.redacted(redaction).answer.unwrap().body.is_some()
        };
        assert!(body_left(&Redaction::new()) && body_left(&Redaction::new().header("x-a")));
        assert!(!body_left(&Redaction::people()) && !body_left(&Redaction::new().reasons()));
    }

    #[test]
    fn parameters_of_a_query_are_known_by_name() {
        for (target, logged) in [
            ("/webhooks", "/webhooks"),
            ("/webhooks?", "/webhooks?"),
            ("/webhooks?a=1&b", "/webhooks?a=1&b"),
            ("/w?code=s3&x=1", "/w?code=[redacted]&x=1"),
            ("/w?x=1&Access_Token=a=b", "/w?x=1&Access_Token=[redacted]"),
            ("/w?key&token=", "/w?key&token=[redacted]"),
            ("/w?%74oke%6E=s3", "/w?%74oke%6E=[redacted]"),
            ("/w?c%6Fd%65=s3&%zz%=1", "/w?c%6Fd%65=[redacted]&%zz%=1"),
        ] {
            assert_eq!(target_as_logged(target), logged);
        }
    }
}
