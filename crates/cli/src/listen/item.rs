//! A delivery as the list shows it.

use clap::builder::styling::{AnsiColor, Style};
use hookgate::Scheme;
use hookgate::internal::from_foreign_json;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::log::LoggedDeliveryExt;
use serde_json::Value;

use crate::durations;
use crate::printable::{beginning, printable, short_reason};

/// The result of a delivery, in as many kinds as there are colours for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Answered 2xx, and remembered.
    Done,
    /// A duplicate of an event that is done.
    Again,
    /// Answered before its run had ended.
    RunsOn,
    /// Authentic, and its run failed: the sender tries again.
    Failed,
    /// Answered without a run; or not at all, since the sender hung up.
    Refused,
}

impl Verdict {
    /// Derives it from the name of an outcome, since a log keeps that name.
    pub(crate) fn of(outcome: &str) -> Self {
        match outcome {
            "accepted"
            | "handled"
            | "unhandled"
            | "handled_claim_lost"
            | "handled_commit_failed"
            | "handled_commit_too_slow"
            | "dead_lettered" => Self::Done,
            "replayed" | "replayed_with_other_body" => Self::Again,
            "runs_on" => Self::RunsOn,
            "handler_status"
            | "type_mismatch"
            | "misfit" // the name of `type_mismatch` in logs of an earlier commit
            | "unhandled_refused"
            | "panicked"
            | "service_error"
            | "run_limit"
            | "drained"
            | "dead_letter_failed"
            | "dead_letter_hook_missing" => Self::Failed,
            _ => Self::Refused,
        }
    }

    /// Green for a success, yellow for a run that goes on or failed, red for a refusal.
    pub(crate) fn style(self) -> Style {
        let colour = match self {
            Self::Done | Self::Again => AnsiColor::Green,
            Self::RunsOn | Self::Failed => AnsiColor::Yellow,
            Self::Refused => AnsiColor::Red,
        };
        colour.on_default()
    }

    /// The word that a filter uses.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Again => "again",
            Self::RunsOn => "runs_on",
            Self::Failed => "failed",
            Self::Refused => "refused",
        }
    }

    /// A short explanation for a user who sees the word for the first time.
    pub(crate) fn says(self) -> &'static str {
        match self {
            Self::Done => "authentic, done and remembered",
            Self::Again => "authentic, done before: no second run",
            Self::RunsOn => "authentic, answered before its run has ended",
            Self::Failed => "authentic, and its run failed: the sender tries again",
            Self::Refused => "refused without a run",
        }
    }
}

/// The reason that is shown for a delivery with the id of a done event and another body.
const OTHER_BODY: &str = "its body differs from the one that was handled";

/// A delivery with the texts shown of it. Every text but the delivery's own is safe to print on a
/// terminal.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    /// Counted from 1 since the start.
    pub(crate) number: u64,
    pub(crate) delivery: LoggedDelivery,
    pub(crate) verdict: Verdict,
    /// 0 where no answer was sent.
    pub(crate) status: u16,
    pub(crate) outcome: String,
    pub(crate) reason: String,
    /// The subscription that a refused request claims to come from. Empty if it claims none.
    pub(crate) claimed: String,
    pub(crate) elapsed_ms: f64,
    /// Whether one of our keys has signed it. If not, id and type are unverified text from the
    /// sender.
    pub(crate) authentic: bool,
    pub(crate) event_id: String,
    pub(crate) event_type: String,
    /// What the event is about: data model and row, or the page or member. Empty where its data
    /// names none.
    pub(crate) subject: String,
    /// The text in which free words are searched, besides the body: all fields above in lower case.
    haystack: String,
}

impl Item {
    pub(crate) fn new(number: u64, delivery: LoggedDelivery) -> Self {
        let answer = delivery.answer.as_ref();
        let outcome = answer.map_or("hung_up", |answer| &answer.outcome);
        let elapsed = answer
            .map(|answer| answer.elapsed)
            .or(delivery.hung_up_after);
        let reason = answer.and_then(|answer| answer.reason.as_deref());
        let has_other_body = outcome == "replayed_with_other_body";
        let reason = reason.or(has_other_body.then_some(OTHER_BODY));
        // Where the delivery is not authentic, these texts can have any length.
        let shown =
            |text: Option<String>| printable(&beginning(&text.unwrap_or_default())).into_owned();
        let head = delivery.read_by(Scheme::WORKSPACE);
        let (event_id, event_type) = (shown(head.event_id), shown(head.event_type));
        let mut item = Self {
            number,
            verdict: Verdict::of(outcome),
            status: answer.map_or(0, |answer| answer.status),
            outcome: printable(outcome).into_owned(),
            reason: printable(reason.unwrap_or_default()).into_owned(),
            claimed: shown(answer.and_then(|answer| answer.claimed_subscription.clone())),
            elapsed_ms: durations::millis(elapsed.unwrap_or_default()),
            authentic: answer.is_some_and(|answer| answer.key.is_some()),
            event_id,
            event_type,
            subject: shown(subject(delivery.body.as_deref().unwrap_or_default())),
            haystack: String::new(),
            delivery,
        };
        let Self {
            status,
            outcome,
            reason,
            claimed,
            event_id,
            event_type,
            subject,
            ..
        } = &item;
        item.haystack =
            format!("{status} {outcome} {event_type} {event_id} {subject} {reason} {claimed}")
                .to_lowercase();
        item
    }

    /// The approximate memory that it keeps.
    pub(crate) fn bytes(&self) -> usize {
        let headers = self.delivery.headers.iter();
        let headers: usize = headers.map(|(name, value)| name.len() + value.len()).sum();
        let body = self.delivery.body.as_ref().map_or(0, |body| body.len());
        let answer = self.delivery.answer.as_ref();
        let answer = answer.and_then(|answer| answer.body.as_ref());
        body + headers + answer.map_or(0, |body| body.len()) + 2 * self.haystack.len() + 512
    }

    /// The reason, without the part that repeats the outcome.
    pub(crate) fn short_reason(&self) -> &str {
        short_reason(&self.reason)
    }

    pub(crate) fn body(&self) -> &[u8] {
        self.delivery.body.as_deref().unwrap_or_default()
    }

    /// Returns what the forwarded server or the handler said of its failure: the beginning of the
    /// answer's body.
    pub(crate) fn answered(&self) -> Option<String> {
        if self.verdict != Verdict::Failed {
            return None;
        }
        let body = answer_text(self.delivery.answer.as_ref()?)?.unwrap_or_else(|size| size);
        Some(printable(&beginning(body.trim())).into_owned()).filter(|text| !text.is_empty())
    }

    /// Whether this word, in lower case, occurs in the shown texts, in the delivery's body or in
    /// the answer's body.
    pub(crate) fn contains(&self, word: &str) -> bool {
        let answer = self.delivery.answer.as_ref();
        let answered = answer.and_then(|answer| answer.body.as_deref());
        self.haystack.contains(word)
            || holds(self.body(), word.as_bytes())
            || holds(answered.unwrap_or_default(), word.as_bytes())
    }
}

/// Returns the body of an answer as text; `None` where it was not kept.
///
/// # Errors
/// It is compressed or no text: its size, with its encoding or type.
pub(crate) fn answer_text(answer: &LoggedAnswer) -> Option<Result<String, String>> {
    let body = answer.body.as_deref()?;
    let header = |wanted: &str| {
        let mut headers = answer.headers.iter();
        let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case(wanted))?;
        Some(printable(&beginning(&String::from_utf8_lossy(value))).into_owned())
    };
    let encoding = header("content-encoding").filter(|encoding| encoding != "identity");
    let text = match std::str::from_utf8(body) {
        // The kept part can end within a character.
        Err(error) if answer.body_bytes.is_some() && error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).ok()
        }
        text => text.ok(),
    };
    let is_text = |text: &&str| text.is_empty() || encoding.is_none() && !text.contains('\0');
    Some(match text.filter(is_text) {
        Some(text) => Ok(text.to_owned()),
        None => {
            let bytes = answer.body_bytes.unwrap_or(body.len() as u64);
            let kind = encoding.or_else(|| header("content-type"));
            let kind = kind.unwrap_or_else(|| "no text".to_owned());
            Err(format!("{bytes} bytes, {kind}"))
        }
    })
}

/// `Orders · row_1` of a row, the title of a page, the address of a member.
fn subject(body: &[u8]) -> Option<String> {
    let event: Value = from_foreign_json(body).ok()?;
    let first = |names: &[&str]| {
        let texts = names
            .iter()
            .filter_map(|name| event["data"][*name].as_str());
        texts.into_iter().find(|text| !text.is_empty())
    };
    let model = first(&["datamodelName", "datamodelId"]);
    let what = first(&["rowId", "title", "name", "email", "pageId", "memberId"]);
    let parts: Vec<_> = [model, what].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// Whether the bytes contain the word, whatever the case of ASCII letters.
fn holds(bytes: &[u8], word: &[u8]) -> bool {
    let Some(&first) = word.first() else {
        return true;
    };
    bytes
        .windows(word.len())
        .any(|window| window[0].to_ascii_lowercase() == first && window.eq_ignore_ascii_case(word))
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use hookgate::clock::UnixSeconds;
    use hookgate_record::LoggedAnswer;

    use super::*;

    /// A delivery with this answer.
    pub(crate) fn delivery(body: &str, status: u16, outcome: &str) -> LoggedDelivery {
        let headers = [
            ("X-Service-Event-Id", "evt_header"),
            ("User-Agent", "made-up"),
        ];
        let mut delivery =
            LoggedDelivery::new(UnixSeconds::new(1_763_690_000), headers, body.to_owned());
        let mut answer = LoggedAnswer::new(status, outcome);
        answer.elapsed = Duration::from_micros(1_250);
        answer.key = (status != 401).then(|| "WEBHOOK_SECRET".to_owned());
        delivery.answer = Some(answer);
        delivery
    }

    /// A row that was deleted, handled.
    pub(crate) fn handled(id: &str) -> LoggedDelivery {
        let body = format!(r#"{{"id":"{id}","type":"row.deleted","data":{{"rowId":"Row_A"}}}}"#);
        delivery(&body, 204, "handled")
    }

    #[test]
    fn id_and_type_come_from_the_body_then_from_the_headers() {
        let item = Item::new(1, handled("evt_1"));
        assert_eq!(
            (&*item.event_id, &*item.event_type),
            ("evt_1", "row.deleted")
        );
        assert!(item.authentic);
        let item = Item::new(1, delivery("no JSON", 401, "not_authentic"));
        assert_eq!((&*item.event_id, &*item.event_type), ("evt_header", ""));
        assert!(!item.authentic);
        assert_eq!(item.verdict, Verdict::Refused);
    }

    #[test]
    fn the_subject_is_the_row_with_its_model_or_what_the_event_names() {
        for (data, subject) in [
            (
                r#"{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1"}"#,
                "Orders · row_1",
            ),
            (r#"{"datamodelId":"dm_1","rowId":7}"#, "dm_1"),
            (r#"{"pageId":"page_1","title":"Home"}"#, "Home"),
            (
                r#"{"memberId":"usr_9","email":"ada@example.com"}"#,
                "ada@example.com",
            ),
            ("[]", ""),
            (r#"{"title":"\u202etfel"}"#, "\\u{202e}tfel"),
        ] {
            let body = format!(r#"{{"id":"evt_1","data":{data}}}"#);
            let item = Item::new(1, delivery(&body, 204, "handled"));
            assert_eq!(item.subject, subject, "{data}");
        }
        assert_eq!(
            Item::new(1, delivery("no JSON", 401, "not_authentic")).subject,
            ""
        );
    }

    #[test]
    fn an_answer_that_is_compressed_or_no_text_is_shown_as_its_size() {
        let cut = "é".repeat(2);
        for (headers, body, whole, shown) in [
            (
                "content-type: text/plain",
                &b"broken"[..],
                None,
                Ok("broken"),
            ),
            (
                "content-encoding: gzip",
                b"\x1f\x8b\x08\0d",
                None,
                Err("5 bytes, gzip"),
            ),
            (
                "content-encoding: gzip",
                b"d",
                Some(70_000),
                Err("70000 bytes, gzip"),
            ),
            ("content-encoding: gzip", b"", None, Ok("")),
            ("content-encoding: identity", b"{}", None, Ok("{}")),
            (
                "content-type: image/png",
                b"\x89PNG",
                None,
                Err("4 bytes, image/png"),
            ),
            ("x-other: 1", b"a\0b", None, Err("3 bytes, no text")),
            ("x-other: 1", &cut.as_bytes()[..3], Some(4), Ok("é")),
            (
                "x-other: 1",
                &cut.as_bytes()[..3],
                None,
                Err("3 bytes, no text"),
            ),
        ] {
            let mut failed = delivery("{}", 502, "handler_status");
            let answer = failed.answer.as_mut().unwrap();
            let (name, value) = headers.split_once(": ").unwrap();
            answer.headers = vec![(name.to_owned(), value.to_owned().into())];
            answer.body = Some(body.to_vec().into());
            answer.body_bytes = whole;
            let found = answer_text(answer).unwrap();
            let found = found.as_deref().map_err(String::as_str);
            assert_eq!(found, shown, "{headers}");
            let reason = Item::new(1, failed).answered().unwrap_or_default();
            assert_eq!(reason, shown.unwrap_or_else(|size| size));
        }
    }

    #[test]
    fn nothing_that_is_shown_can_move_a_cursor() {
        let body = r#"{"id":"evt_\u001b[2J\u202e","type":"row.\u0007x"}"#;
        let mut delivery = delivery(body, 502, "handler_status");
        delivery.answer.as_mut().unwrap().reason = Some("said \u{1b}]0;x\u{7}\r\n".into());
        let item = Item::new(1, delivery);
        for text in [
            &item.event_id,
            &item.event_type,
            &item.reason,
            &item.outcome,
        ] {
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
        assert_eq!(item.event_id, "evt_\\u{1b}[2J\\u{202e}");
        assert_eq!(item.verdict, Verdict::Failed);
    }

    #[test]
    fn a_copy_with_another_body_says_so() {
        let copy = |outcome| Item::new(1, delivery("{}", 200, outcome));
        assert_eq!(copy("replayed_with_other_body").short_reason(), OTHER_BODY);
        assert_eq!(copy("replayed").short_reason(), "");
    }

    #[test]
    fn words_are_found_in_what_is_shown_and_in_the_body_whatever_their_case() {
        let item = Item::new(1, handled("EVT_1"));
        for word in ["evt_1", "204", "handled", "row.d", "row_a", "rowid", ""] {
            assert!(item.contains(word), "{word}");
        }
        assert!(!item.contains("row_b"));
    }
}
