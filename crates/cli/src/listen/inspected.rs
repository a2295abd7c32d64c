//! The deliveries that `--page` shows: the newest ones, with the signature cut off.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hookgate_emulator::{Inspected, Inspector};
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::Explainer;
use hookgate_testing::iso8601;
use serde_json::{Value, json};
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::mpsc::Receiver;

use super::item::Item;
use super::list::MAX_BYTES;
use crate::address::cannot_listen;
use crate::explain::ExplanationOutput;
use crate::fault::{Class, Fault};

/// The bytes of a body that a page shows.
const LONGEST_BODY: usize = 256 << 10;
/// Header names whose values are cut off: a request could be sent again with them, as long as it is fresh.
const SIGNATURE: &str = "x-service-signature";
/// The characters of a signature that stay, to compare two of them.
const KEPT_OF_SIGNATURE: usize = 15;

const ALONE: &str = "--page alone takes a free port of this machine";

/// The deliveries that are kept for the page.
struct Kept {
    items: Mutex<Items>,
    most: usize,
    explainer: Option<Explainer>,
}

#[derive(Default)]
struct Items {
    newest_last: VecDeque<Arc<Item>>,
    bytes: usize,
}

/// Serves the page, and takes the deliveries for it as long as there are any.
///
/// # Errors
/// The address is none of this machine alone, or can't be listened on.
pub(crate) async fn serve(
    address: &str,
    most: usize,
    explainer: Option<Explainer>,
    mut deliveries: Receiver<LoggedDelivery>,
) -> Result<String, Fault> {
    let kept = Arc::new(Kept {
        items: Mutex::default(),
        most,
        explainer,
    });
    let listener = bind(address).await?;
    let inspected = Arc::clone(&kept);
    let inspector =
        Inspector::start(listener, inspected).map_err(|error| unusable(address, &error))?;
    let url = inspector.url();
    tokio::spawn(async move {
        let mut number = 0;
        while let Some(delivery) = deliveries.recv().await {
            number += 1;
            let item = Arc::new(Item::new(number, delivery));
            let shown = summary(&item);
            kept.push(item);
            inspector.tell(&shown);
        }
    });
    Ok(url)
}

/// The page has no token, so it is for this machine alone.
async fn bind(address: &str) -> Result<TcpListener, Fault> {
    let found = lookup_host(address).await;
    let addresses: Vec<SocketAddr> = found.map_err(|error| unusable(address, &error))?.collect();
    if !addresses.iter().all(|address| address.ip().is_loopback()) {
        let what =
            format!("{address} is reached from other machines, and the page shows every body");
        return Err(Fault::new(Class::Usage, what).advise(ALONE));
    }
    let bound = TcpListener::bind(&*addresses).await;
    bound.map_err(|error| unusable(address, &error))
}

fn unusable(address: &str, error: &io::Error) -> Fault {
    cannot_listen(&format!("the page can't listen on {address}"), ALONE, error)
}

impl Kept {
    fn push(&self, item: Arc<Item>) {
        let mut items = self.items();
        items.bytes += item.bytes();
        items.newest_last.push_back(item);
        while items.newest_last.len() > self.most.max(1)
            || (items.bytes > MAX_BYTES && items.newest_last.len() > 1)
        {
            let oldest = items.newest_last.pop_front();
            items.bytes -= oldest.map_or(0, |oldest| oldest.bytes());
        }
    }

    fn items(&self) -> std::sync::MutexGuard<'_, Items> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Arc<Item>> {
        let number: u64 = id.parse().ok()?;
        let items = self.items();
        let found = items.newest_last.iter().find(|item| item.number == number);
        found.cloned()
    }
}

impl Inspected for Kept {
    fn deliveries(&self, state: Option<&str>, limit: usize) -> Vec<Value> {
        let is_wanted = |item: &&Arc<Item>| state.is_none_or(|state| item.verdict.word() == state);
        let items: Vec<_> = self
            .items()
            .newest_last
            .iter()
            .rev()
            .filter(is_wanted)
            .take(limit)
            .cloned()
            .collect();
        items.iter().map(|item| summary(item)).collect()
    }

    fn kept(&self) -> usize {
        self.items().newest_last.len()
    }

    fn delivery(&self, id: &str) -> Option<Value> {
        self.find(id).map(|item| detail(&item))
    }

    fn explain(&self, id: &str) -> Option<Value> {
        let item = self.find(id)?;
        let Some(explainer) = &self.explainer else {
            let conclusion = "a secret that was typed is not kept: start with --secret-env, --secret-file or WEBHOOK_SECRET set";
            return Some(
                json!({ "authentic": false, "conclusion": conclusion, "causes": [], "hints": [] }),
            );
        };
        let explanation = explainer.explain(&item.delivery);
        serde_json::to_value(ExplanationOutput::of(&explanation)).ok()
    }
}

/// A delivery in the form of the emulator's list. The sender's attempts are deliveries of their own here.
fn summary(item: &Item) -> Value {
    let answer = item.delivery.answer.as_ref();
    let subscription = answer.and_then(|answer| answer.scope.as_deref());
    let hung_up = answer.is_none().then_some("the sender hung up");
    json!({
        "number": item.number,
        "id": item.number.to_string(),
        "eventId": item.event_id,
        "eventType": item.event_type,
        "subscriptionId": subscription.unwrap_or_default(),
        "state": item.verdict.word(),
        "nextAttemptAt": null,
        "attempts": [{
            "at": iso8601(item.delivery.received_at),
            "status": answer.map(|answer| answer.status),
            "error": hung_up,
            "durationMs": item.elapsed_ms,
        }],
    })
}

fn detail(item: &Item) -> Value {
    let mut detail = summary(item);
    let delivery = &item.delivery;
    let headers: Vec<_> = delivery
        .headers
        .iter()
        .map(|(name, value)| [name.clone(), header(name, value)])
        .collect();
    let body = delivery.body.as_ref().map(|body| {
        let shown = String::from_utf8_lossy(&body[..body.len().min(LONGEST_BODY)]).into_owned();
        if body.len() > LONGEST_BODY {
            format!("{shown}… ({} bytes)", body.len())
        } else {
            shown
        }
    });
    let attempt = &mut detail["attempts"][0];
    attempt["fault"] = Value::Null;
    attempt["answer"] = Value::Null;
    attempt["request"] = json!({ "method": delivery.method, "url": delivery.target, "headers": headers, "body": body });
    detail["reason"] = json!(Some(item.short_reason()).filter(|reason| !reason.is_empty()));
    detail["facts"] = json!(facts(item));
    detail
}

fn facts(item: &Item) -> Vec<[String; 2]> {
    let answer = item.delivery.answer.as_ref();
    let fact = |name: &str, text: Option<String>| text.map(|text| [name.to_owned(), text]);
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let claimed =
        some(&item.claimed).map(|id| format!("{id}, unproven: any client can send any id"));
    [
        fact("Verdict", some(item.verdict.says())),
        fact("Outcome", some(&item.outcome)),
        fact("Event", some(&item.event_id)),
        fact("Came at", Some(iso8601(item.delivery.received_at))),
        fact("Signed by", answer.and_then(|answer| answer.key.clone())),
        fact(
            "Subscription",
            answer.and_then(|answer| answer.scope.clone()),
        ),
        fact(
            "Attempt",
            answer
                .and_then(|answer| answer.attempt)
                .map(|number| format!("{number}, by the event's age")),
        ),
        fact("Claims", claimed),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Credentials were removed when the delivery was logged; the signature goes here.
fn header(name: &str, value: &[u8]) -> String {
    let text = String::from_utf8_lossy(value).into_owned();
    match (
        name == SIGNATURE,
        text.char_indices().nth(KEPT_OF_SIGNATURE),
    ) {
        (true, Some((end, _))) => format!("{}…", &text[..end]),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::super::item::tests::{delivery, handled};
    use super::*;

    fn kept(most: usize) -> Kept {
        Kept {
            items: Mutex::default(),
            most,
            explainer: None,
        }
    }

    #[test]
    fn the_newest_deliveries_are_kept_and_found_by_their_number() {
        let kept = kept(2);
        for number in 1..=3 {
            kept.push(Arc::new(Item::new(
                number,
                handled(&format!("evt_{number}")),
            )));
        }
        let ids: Vec<_> = kept
            .deliveries(None, 10)
            .iter()
            .map(|one| one["eventId"].clone())
            .collect();
        assert_eq!(ids, ["evt_3", "evt_2"]);
        assert_eq!(kept.deliveries(None, 1).len(), 1);
        assert!(kept.delivery("1").is_none() && kept.delivery("no number").is_none());
        assert_eq!(kept.delivery("3").unwrap()["state"], "done");
    }

    #[test]
    fn a_verdict_is_searched_for_among_all_that_are_kept() {
        let kept = kept(1_000);
        kept.push(Arc::new(Item::new(1, delivery("{}", 401, "not_authentic"))));
        for number in 2..=300 {
            kept.push(Arc::new(Item::new(number, handled("evt_1"))));
        }
        let refused = kept.deliveries(Some("refused"), 100);
        assert_eq!((refused.len(), &refused[0]["id"]), (1, &json!("1")));
        assert_eq!(kept.deliveries(Some("failed"), 100), Vec::<Value>::new());
        assert_eq!(kept.kept(), 300);
    }

    #[test]
    fn bodies_are_bounded_in_all_and_each() {
        let kept = kept(1_000);
        let long = "x".repeat(8 << 20);
        for number in 1..=20 {
            kept.push(Arc::new(Item::new(number, delivery(&long, 204, "handled"))));
        }
        assert!(kept.items().bytes <= MAX_BYTES);
        assert!(kept.deliveries(None, 1_000).len() < 9);
        let shown = kept.delivery("20").unwrap();
        let body = shown["attempts"][0]["request"]["body"].as_str().unwrap();
        assert!(body.len() < LONGEST_BODY + 100, "{}", body.len());
    }

    #[test]
    fn a_signature_is_cut_off_and_nothing_else() {
        let mut signed = handled("evt_1");
        let whole = format!("sha256={}", "ab".repeat(32));
        signed
            .headers
            .push((SIGNATURE.to_owned(), whole.clone().into()));
        let text = detail(&Item::new(1, signed)).to_string();
        assert!(
            !text.contains(&whole) && text.contains("sha256=abababab…") && text.contains("made-up"),
            "{text}"
        );
    }
}
