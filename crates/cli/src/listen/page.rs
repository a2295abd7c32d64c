//! The page of one delivery: its lines, without a terminal.

use bytes::Bytes;
use hookgate::Properties;
use hookgate_record::LoggedDelivery;
use hookgate_testing::log::LoggedDeliveryExt;
use hookgate_testing::{event, iso8601};

use super::item::Item;
use super::page_line::{Kind, PageLine, field, line, unread};
use super::pretty;
use super::typed;
use crate::fault::chain;
use crate::printable::{printable, printable_bytes};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Answer,
    Head,
    Body,
    Event,
}

impl Tab {
    pub(crate) const ALL: [Self; 4] = [Self::Answer, Self::Head, Self::Body, Self::Event];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Answer => "Answer",
            Self::Head => "Head",
            Self::Body => "Body",
            Self::Event => "Event",
        }
    }

    /// Moves this number of tabs to the right, around the end.
    pub(crate) fn beside(self, steps: usize) -> Self {
        let at = Self::ALL
            .iter()
            .position(|&tab| tab == self)
            .unwrap_or_default();
        Self::ALL[(at + steps) % Self::ALL.len()]
    }
}

/// The lines of a delivery under this tab. `log` is the file in which deliveries are recorded.
pub(crate) fn page(item: &Item, tab: Tab, raw: bool, log: Option<&str>) -> Vec<PageLine> {
    match tab {
        Tab::Answer => answer(item, log),
        Tab::Head => head(&item.delivery),
        Tab::Body => body(item, raw),
        Tab::Event => typed::typed(item),
    }
}

fn answer(item: &Item, log: Option<&str>) -> Vec<PageLine> {
    let mut lines = vec![
        field(
            "verdict",
            format!("{} {}", item.verdict.glyph(), item.verdict.says()),
        ),
        field("answered", format!("{} {}", item.status, item.outcome)),
        field("came at", iso8601(item.delivery.received_at)),
        field("took", format!("{:.2} ms", item.elapsed_ms)),
    ];
    if let Some(answer) = &item.delivery.answer {
        let key = answer.key.as_deref().map(printable);
        lines.extend(key.map(|key| field("signed by", key)));
        let scope = answer.scope.as_deref().map(printable);
        lines.extend(scope.map(|scope| field("scope", scope)));
        lines.extend(
            answer
                .attempt
                .map(|number| field("attempt", format!("{number}, by the event's age"))),
        );
    }
    if !item.claimed.is_empty() {
        lines.push(field(
            "claims",
            format!(
                "subscription {}, unproven: any client can send any id",
                item.claimed
            ),
        ));
    }
    if !item.reason.is_empty() {
        lines.push(line(Kind::Plain, ""));
        lines.push(line(Kind::Bad, item.reason.clone()));
    }
    if let Some(error) = no_event(item) {
        lines.push(line(Kind::Plain, ""));
        let text = format!("A handler that takes `Event` answers 422: {error}");
        lines.push(line(Kind::Remark, text));
    }
    let advice = advice(item, log);
    if !advice.is_empty() {
        lines.push(line(Kind::Plain, ""));
    }
    lines.extend(advice.into_iter().map(|text| line(Kind::Advice, text)));
    lines
}

/// The reason why the authentic body is not an [`Event`](hookgate::Event).
fn no_event(item: &Item) -> Option<String> {
    let error = event::<Properties>(item.body()).err()?;
    item.authentic
        .then(|| printable(&chain(&error)).into_owned())
}

/// The next place to look, for outcomes that need an explanation.
fn advice(item: &Item, log: Option<&str>) -> Vec<String> {
    match &*item.outcome {
        "not_authentic" => {
            let mut lines =
                vec!["Press e: which mistake it is, and how to fix it. In a shell:".to_owned()];
            match log {
                Some(log) => lines.push(format!("  {}", explain(item, log))),
                None => lines.push(
                    "  hookgate listen --record LOG, then hookgate explain --log LOG for one of its deliveries".to_owned(),
                ),
            }
            lines
        }
        "encoding_not_supported" => {
            vec![
                "Something on the way compresses bodies; deliveries are not compressed.".to_owned(),
            ]
        }
        "replayed_with_other_body" => {
            vec!["An event's body never changes under its id: the sender has used one id for two events.".to_owned()]
        }
        "wrong_path" => vec!["Give the subscription the whole address, path included.".to_owned()],
        _ => Vec::new(),
    }
}

/// The command that explains this delivery of a log. It names the delivery by its id, since the number of lines that the log had
/// before is unknown. The command asks back where the log has several deliveries with that id.
fn explain(item: &Item, log: &str) -> String {
    let log = shell_words::quote(log);
    // An id that is shown in another form than received would not be found.
    let id = item.delivery.event_id().filter(|id| *id == item.event_id);
    match id {
        Some(id) => format!(
            "hookgate explain --log {log} --id {}",
            shell_words::quote(&id)
        ),
        None => format!("hookgate log list {log}"),
    }
}

fn head(delivery: &LoggedDelivery) -> Vec<PageLine> {
    let request = format!(
        "{} {}",
        printable(&delivery.method),
        printable(&delivery.target)
    );
    let mut lines = vec![line(Kind::Plain, request)];
    let header = |(name, value): &(String, Bytes)| field(&printable(name), printable_bytes(value));
    lines.extend(delivery.headers.iter().map(header));
    lines
}

fn body(item: &Item, raw: bool) -> Vec<PageLine> {
    let Some(bytes) = &item.delivery.body else {
        return vec![unread(&item.delivery)];
    };
    let form = if std::str::from_utf8(bytes).is_err() {
        "not UTF-8, shown as bytes"
    } else if raw {
        "raw; w shows it indented"
    } else {
        "indented where it is JSON; w shows it raw"
    };
    let mut lines = vec![line(Kind::Remark, format!("{} bytes, {form}", bytes.len()))];
    if item.delivery.unverifiable {
        lines.push(line(Kind::Remark, "something was taken out of it"));
    }
    lines.extend(
        pretty::lines(bytes, raw)
            .into_iter()
            .map(|text| line(Kind::Plain, text)),
    );
    lines
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::delivery;
    use super::*;

    #[test]
    fn an_authentic_delivery_that_is_not_an_event_is_marked() {
        let marked = |status, outcome| {
            let body = r#"{"id":"evt_1","type":"row.created","createdAt":"2026-11-21T09:30:00Z","workspaceId":"ws_1"}"#;
            let lines = page(
                &Item::new(1, delivery(body, status, outcome)),
                Tab::Answer,
                false,
                None,
            );
            let text = "A handler that takes `Event` answers 422: data is missing";
            lines.iter().any(|line| line.text == text)
        };
        assert!(marked(204, "handled"));
        assert!(!marked(401, "not_authentic"));
    }

    #[test]
    fn the_claimed_subscription_of_a_refused_delivery_is_shown_as_unproven() {
        let mut refused = delivery("{}", 401, "not_authentic");
        refused.answer.as_mut().unwrap().claimed_subscription = Some("wh_\u{1b}1".into());
        let item = Item::new(1, refused);
        let shown: Vec<_> = page(&item, Tab::Answer, false, None)
            .into_iter()
            .map(|line| line.text)
            .collect();
        let claim = "claims: subscription wh_\\u{1b}1, unproven: any client can send any id";
        assert!(shown.iter().any(|line| line == claim), "{shown:?}");
        assert!(item.contains("wh_"), "a filter finds it");
        let handled = Item::new(1, delivery("{}", 204, "handled"));
        let shown = page(&handled, Tab::Answer, false, None);
        assert!(shown.iter().all(|line| !line.text.starts_with("claims")));
    }
}
