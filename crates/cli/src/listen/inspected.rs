//! The deliveries that `--page` shows: the newest ones, with the signature cut off.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use hookgate_emulator::{DeliveryFilter, Inspected, Inspector};
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::Explainer;
use hookgate_testing::iso8601;
use hookgate_testing::sender::meaning;
use http::Uri;
use serde_json::{Value, json};
use tokio::net::{TcpListener, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

use super::again::Again;
use super::filter::Filter;
use super::item::Item;
use crate::address::cannot_listen;
use crate::explain::ExplanationOutput;
use crate::fault::{Class, Fault};

/// The most bytes of deliveries that are kept, whatever their number.
const MAX_BYTES: usize = 64 << 20;
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
    again: Again,
    /// The address of this receiver, as seen from this machine.
    own: Uri,
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
    again: Again,
    own: Uri,
    mut deliveries: Receiver<LoggedDelivery>,
) -> Result<String, Fault> {
    let kept = Arc::new(Kept {
        items: Mutex::default(),
        most,
        explainer,
        again,
        own,
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
    fn deliveries(&self, filter: &DeliveryFilter<'_>, limit: usize) -> Vec<Value> {
        let words = Filter::parse(filter.search.unwrap_or_default());
        let part = filter.event_type.unwrap_or_default().to_lowercase();
        let is_wanted = |item: &&Arc<Item>| {
            filter
                .state
                .is_none_or(|state| item.verdict.word() == state)
                && item.event_type.to_lowercase().contains(&part)
                && words.takes(item)
        };
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
        self.find(id).map(|item| detail(&item, &self.own))
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

    /// Only what one of our keys has signed: else anyone could have a body signed, by sending it here first.
    fn replay(&self, id: &str) -> Option<Result<String, String>> {
        let item = self.find(id)?;
        if !item.authentic {
            return Some(Err(format!(
                "#{id} is not authentic: the page signs again only what one of your keys has signed"
            )));
        }
        let delivered = self.again.deliver(&item.delivery, &self.own);
        Some(match Handle::current().block_on(delivered) {
            Ok(status @ 200..300) => Ok(format!("#{id} delivered again: {status}")),
            Ok(status) => Err(format!(
                "#{id} delivered again: {status}, {}",
                meaning(status)
            )),
            Err(error) => Err(format!("#{id} not delivered again: {error}")),
        })
    }
}

/// A delivery in the form of the emulator's list. The sender's attempts are deliveries of their own here, and the keys of this command
/// belong to no subscription.
fn summary(item: &Item) -> Value {
    let answer = item.delivery.answer.as_ref();
    let hung_up = answer.is_none().then_some("the sender hung up");
    json!({
        "number": item.number,
        "id": item.number.to_string(),
        "eventId": item.event_id,
        "eventType": item.event_type,
        "subscriptionId": null,
        "state": item.verdict.word(),
        "nextAttemptAt": null,
        "attempts": [{
            "at": iso8601(item.delivery.received_at),
            "status": answer.map(|answer| answer.status),
            "error": hung_up,
            "meaning": answer.map(|answer| answer.status).filter(|status| *status / 100 != 2).map(meaning),
            "durationMs": item.elapsed_ms,
        }],
    })
}

fn detail(item: &Item, own: &Uri) -> Value {
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
    let host = own.authority().map_or("", http::uri::Authority::as_str);
    let url = format!("http://{host}{}", delivery.target);
    let attempt = &mut detail["attempts"][0];
    attempt["fault"] = Value::Null;
    attempt["answer"] = Value::Null;
    attempt["request"] =
        json!({ "method": delivery.method, "url": url, "headers": headers, "body": body });
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
            again: Again {
                client: crate::http_client::HttpClient::new().unwrap(),
                secret: hookgate::Secret::new("whsec_made_up_for_the_page").unwrap(),
            },
            own: Uri::from_static("http://127.0.0.1:9/webhooks"),
        }
    }

    fn newest(kept: &Kept, limit: usize) -> Vec<Value> {
        kept.deliveries(&DeliveryFilter::default(), limit)
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
        let ids: Vec<_> = newest(&kept, 10)
            .iter()
            .map(|one| one["eventId"].clone())
            .collect();
        assert_eq!(ids, ["evt_3", "evt_2"]);
        assert_eq!(newest(&kept, 1).len(), 1);
        assert!(kept.delivery("1").is_none() && kept.delivery("no number").is_none());
        assert_eq!(kept.delivery("3").unwrap()["state"], "done");
    }

    // fault V6: a page's filter searches the newest 100 deliveries alone: a refused one behind them is not found, and "Nothing has arrived yet" stands beside "Show more"
    #[test]
    fn verdict_type_and_words_are_searched_for_among_all_that_are_kept() {
        let kept = kept(1_000);
        kept.push(Arc::new(Item::new(1, delivery("{}", 401, "not_authentic"))));
        for number in 2..=300 {
            kept.push(Arc::new(Item::new(number, handled("evt_1"))));
        }
        let found = |state, event_type, search| {
            let filter = DeliveryFilter {
                state,
                event_type,
                search,
            };
            let found = kept.deliveries(&filter, 1_000);
            (found.len(), found.first().map(|one| one["id"].clone()))
        };
        let only = |id: &str| (1, Some(json!(id)));
        assert_eq!(found(Some("refused"), None, None), only("1"));
        assert_eq!(found(Some("failed"), None, None), (0, None));
        assert_eq!(found(None, Some("Row."), None).0, 299);
        assert_eq!(found(None, None, Some("not_authentic 401")), only("1"));
        assert_eq!(found(None, None, Some("evt_1 row_a")).0, 299);
        assert_eq!(found(Some("done"), Some("page."), Some("evt_1")).0, 0);
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
        assert!(newest(&kept, 1_000).len() < 9);
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
        let text = detail(&Item::new(1, signed), &kept(1).own).to_string();
        assert!(
            !text.contains(&whole) && text.contains("sha256=abababab…") && text.contains("made-up"),
            "{text}"
        );
    }

    /// The page must not be a way to a signature: a body that anyone sent would be accepted after its replay.
    #[test]
    fn what_was_refused_is_not_signed_by_a_replay() {
        let kept = kept(10);
        kept.push(Arc::new(Item::new(1, delivery("{}", 401, "not_authentic"))));
        let refused = kept.replay("1").unwrap().unwrap_err();
        assert!(refused.contains("not authentic"), "{refused}");
        assert!(kept.replay("2").is_none());
    }

    #[test]
    fn the_page_has_the_words_of_the_terminal() {
        let page = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../emulator/src/page/listen.js"
        );
        let page = std::fs::read_to_string(page).unwrap();
        use crate::listen::item::Verdict::{Again, Done, Failed, Refused, RunsOn};
        for verdict in [Done, Again, RunsOn, Failed, Refused] {
            let choice = format!("['{}', ", verdict.word());
            assert!(page.contains(&choice), "{choice}");
        }
    }
}
