//! The deliveries that `--page` shows: the newest ones, with the signature cut off.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::future::Future;
use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hookgate::Verifier;
use hookgate_emulator::{DeliveryFilter, Inspected, Inspector};
use hookgate_record::LoggedDelivery;
use hookgate_testing::explain::Explainer;
use hookgate_testing::iso8601;
use hookgate_testing::log::DeliveryLog;
use hookgate_testing::sender::meaning;
use http::{Response, Uri};
use serde_json::{Value, json};
use tokio::net::{TcpListener, lookup_host};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;

use super::answers::{Again, changed};
use super::filter::{EventTypes, Filter};
use super::item::{Item, answer_text};
use crate::address::cannot_listen;
use crate::explain::ExplanationOutput;
use crate::fault::{Class, Fault, note};

/// The most bytes of deliveries that are kept, whatever their number.
const MAX_BYTES: usize = 64 << 20;
/// The bytes of a body that a page shows: all that a receiver accepts by default.
const LONGEST_BODY: usize = 1 << 20;
/// Header names whose values are cut off: a request could be sent again with them, as long as it is
/// fresh.
const SIGNATURE: &str = "x-service-signature";
/// The most time from an answer until its delivery is in the list.
const TO_COME: Duration = Duration::from_secs(1);
/// The characters of a signature that stay, to compare two of them.
const KEPT_OF_SIGNATURE: usize = 15;

const ALONE: &str = "--page alone takes a free port of this machine";

/// The page shows these settings beside the deliveries, and its buttons use them.
pub(crate) struct Settings {
    /// The most deliveries that are kept.
    pub(crate) most: usize,
    pub(crate) explainer: Option<Explainer>,
    pub(crate) again: Again,
    /// The address of this receiver, as seen from this machine.
    pub(crate) own: Uri,
    pub(crate) forward: Option<Uri>,
    /// A command that sends a delivery here.
    pub(crate) next: String,
    pub(crate) events: EventTypes,
}

/// The deliveries that are kept for the page.
pub(crate) struct Kept {
    items: Mutex<Items>,
    /// Notified of each delivery.
    came: Condvar,
    settings: Settings,
}

#[derive(Default)]
struct Items {
    newest_last: VecDeque<Entry>,
    bytes: usize,
    received: u64,
}

/// A delivery with its id on the page, which is made of the event's id and the second of its
/// arrival.
#[derive(Clone)]
struct Entry {
    id: Arc<str>,
    item: Arc<Item>,
}

/// Serves the page, and takes the deliveries for it as long as there are any. Returns its address,
/// with the token for changed bodies.
///
/// # Errors
/// The address is none of this machine alone, or can't be listened on.
pub(crate) async fn serve(
    address: &str,
    kept: Kept,
    mut deliveries: Receiver<LoggedDelivery>,
) -> Result<String, Fault> {
    let kept = Arc::new(kept);
    let listener = bind(address).await?;
    let inspected = Arc::clone(&kept);
    let inspector =
        Inspector::start(listener, inspected).map_err(|error| unusable(address, &error))?;
    let url = inspector.signing_url();
    tokio::spawn(async move {
        let events = kept.settings.events.clone();
        loop {
            tokio::select! {
                delivery = deliveries.recv() => {
                    let Some(delivery) = delivery else { break };
                    let mut shown = summary(&kept.push(delivery));
                    shown["totals"] = kept.totals(&kept.all());
                    inspector.tell(&shown);
                }
                () = events.leaves_out() => inspector.tell_totals(),
            }
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

/// Keeps at most as many, and at most `MAX_BYTES` in all, but always the newest.
fn drop_oldest<T>(
    newest_last: &mut VecDeque<T>,
    bytes: &mut usize,
    most: usize,
    length: impl Fn(&T) -> usize,
) {
    while newest_last.len() > most.max(1) || (*bytes > MAX_BYTES && newest_last.len() > 1) {
        *bytes -= newest_last.pop_front().as_ref().map_or(0, &length);
    }
}

impl Kept {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            items: Mutex::default(),
            came: Condvar::new(),
            settings,
        }
    }

    /// Takes the newest deliveries of a log, without the lines that can't be read. A delivery that
    /// these keys have not signed is not authentic, whatever the log says.
    pub(crate) fn load(&self, log: &Path, keys: &Verifier) -> Result<(), Fault> {
        let unreadable = |error: &dyn std::error::Error| {
            let what = format!("the log {} can't be read", log.display());
            Fault::caused_by(Class::Input, &what, error).advise(
                "give a file that `hookgate listen`, with --record, or a recorder has written",
            )
        };
        let file = File::open(log).map_err(|error| unreadable(&error))?;
        let (mut newest, mut bytes, mut read) = (VecDeque::new(), 0, 0);
        let length = |delivery: &LoggedDelivery| delivery.body.as_ref().map_or(0, Bytes::len);
        for delivery in DeliveryLog::lines(BufReader::new(file)) {
            let delivery = match delivery {
                Ok(delivery) => delivery,
                Err(error) if error.line().is_some() => {
                    note(&format!(
                        "{} is read without a line: {error}",
                        log.display()
                    ));
                    continue;
                }
                Err(error) => return Err(unreadable(&error)),
            };
            read += 1;
            bytes += length(&delivery);
            newest.push_back(delivery);
            drop_oldest(&mut newest, &mut bytes, self.settings.most, length);
        }
        self.items().received += read - newest.len() as u64;
        // Only what stays is verified and shown: the log may be long.
        for mut delivery in newest {
            if !is_signed(&delivery, keys)
                && let Some(answer) = &mut delivery.answer
            {
                answer.key = None;
            }
            self.push(delivery);
        }
        Ok(())
    }

    fn push(&self, delivery: LoggedDelivery) -> Entry {
        let mut items = self.items();
        items.received += 1;
        let item = Item::new(items.received, delivery);
        let entry = Entry {
            id: items.id_of(&item),
            item: Arc::new(item),
        };
        let Items {
            newest_last, bytes, ..
        } = &mut *items;
        *bytes += entry.item.bytes();
        newest_last.push_back(entry.clone());
        // Always the newest is kept.
        drop_oldest(newest_last, bytes, self.settings.most, |entry| {
            entry.item.bytes()
        });
        self.came.notify_all();
        entry
    }

    fn all(&self) -> Vec<Entry> {
        self.items().newest_last.iter().cloned().collect()
    }

    /// These are counted by their verdict.
    fn totals<'e>(&self, counted: impl IntoIterator<Item = &'e Entry>) -> Value {
        let mut states = BTreeMap::new();
        for entry in counted {
            *states.entry(entry.item.verdict.word()).or_insert(0_u64) += 1;
        }
        let items = self.items();
        json!({
            "kept": items.newest_last.len(),
            "received": items.received,
            "states": states,
            "leftOut": self.settings.events.left_out(),
        })
    }

    fn items(&self) -> std::sync::MutexGuard<'_, Items> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Option<Entry> {
        let items = self.items();
        let newest_first = || items.newest_last.iter().rev();
        let of_event = |entry: &&Entry| !id.is_empty() && entry.item.event_id == id;
        let found = newest_first().find(|entry| &*entry.id == id);
        found.or_else(|| newest_first().find(of_event)).cloned()
    }

    /// Waits for a delivery of this event behind the one with this number. Returns its id; none may
    /// come, if its type is not shown.
    fn came(&self, event_id: &str, behind: u64) -> Option<Arc<str>> {
        let newest = |items: &Items| {
            let mut newest_first = items.newest_last.iter().rev();
            let is_it =
                |entry: &&Entry| entry.item.number > behind && entry.item.event_id == event_id;
            newest_first.find(is_it).map(|entry| Arc::clone(&entry.id))
        };
        let waited = self
            .came
            .wait_timeout_while(self.items(), TO_COME, |items| newest(items).is_none());
        newest(&waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn told(
        &self,
        event_id: &str,
        what: &str,
        delivered: impl Future<Output = Result<Response<Bytes>, String>>,
    ) -> Result<Value, String> {
        let name = match event_id {
            "" => "The delivery",
            id => id,
        };
        let before = self.items().received;
        let answered = Handle::current().block_on(delivered);
        let response = answered.map_err(|error| format!("{name} not {what}: {error}"))?;
        let status = response.status().as_u16();
        if !response.status().is_success() {
            return Err(format!("{name} {what}: {status}, {}", meaning(status)));
        }
        let nothing = match (
            response.headers().contains_key("idempotent-replayed"),
            &self.settings.forward,
        ) {
            (false, _) => "",
            (true, Some(_)) => ", done before: not passed on",
            (true, None) => ", done before: not handled again",
        };
        let told = format!("{name} {what}: {status}{nothing}");
        Ok(json!({ "told": told, "id": self.came(event_id, before).as_deref() }))
    }
}

impl Items {
    /// Further deliveries of an event in one second are numbered.
    fn id_of(&self, item: &Item) -> Arc<str> {
        let name = match &*item.event_id {
            "" => "delivery",
            id => id,
        };
        let id = format!("{name}@{}", iso8601(item.delivery.received_at));
        // The number of the newest one: older ones may be gone.
        let number =
            self.newest_last
                .iter()
                .rev()
                .find_map(|other| match other.id.strip_prefix(&*id)? {
                    "" => Some(1),
                    number => number.strip_prefix('.')?.parse::<usize>().ok(),
                });
        match number {
            None => id.into(),
            Some(number) => format!("{id}.{}", number + 1).into(),
        }
    }
}

/// Whether these keys have signed what the log has, for the time of its arrival.
fn is_signed(delivery: &LoggedDelivery, keys: &Verifier) -> bool {
    let (Some(body), Ok(head)) = (&delivery.body, delivery.head()) else {
        return false;
    };
    keys.verify(&head, body, delivery.received_at).is_ok()
}

impl Inspected for Kept {
    fn deliveries(&self, filter: &DeliveryFilter<'_>, limit: usize) -> (Vec<Value>, Value) {
        let words = Filter::parse(filter.search.unwrap_or_default());
        let part = filter.event_type.unwrap_or_default().to_lowercase();
        // The search reads bodies: deliveries that arrive do not wait for it.
        let mut found = self.all();
        found.retain(|Entry { item, .. }| {
            item.event_type.to_lowercase().contains(&part) && words.takes(item)
        });
        let has_state = |entry: &&Entry| {
            let state = entry.item.verdict.word();
            filter.state.is_none_or(|wanted| wanted == state)
        };
        let listed = found.iter().rev().filter(has_state).take(limit);
        (listed.map(summary).collect(), self.totals(&found))
    }

    fn receiver(&self) -> Value {
        let Settings {
            own,
            forward,
            next,
            most,
            ..
        } = &self.settings;
        let forward = forward.as_ref().map(ToString::to_string);
        json!({ "url": own.to_string(), "forward": forward, "next": next, "most": most })
    }

    fn delivery(&self, id: &str) -> Option<Value> {
        self.find(id)
            .map(|entry| detail(&entry, &self.settings.own))
    }

    fn explain(&self, id: &str) -> Option<Value> {
        let item = self.find(id)?.item;
        let Some(explainer) = &self.settings.explainer else {
            let conclusion = "a secret that was typed is not kept: start with --secret-env, --secret-file or WEBHOOK_SECRET set";
            return Some(
                json!({ "authentic": false, "conclusion": conclusion, "causes": [], "hints": [] }),
            );
        };
        let explanation = explainer.explain(&item.delivery);
        serde_json::to_value(ExplanationOutput::of(&explanation)).ok()
    }

    /// Only what one of our keys has signed: else anyone could have a body signed, by sending it
    /// here first.
    fn replay(&self, id: &str) -> Option<Result<Value, String>> {
        let entry = self.find(id)?;
        if !entry.item.authentic {
            return Some(Err(
                "It is not authentic: what none of your keys has signed is not signed again"
                    .to_owned(),
            ));
        }
        let Settings { again, own, .. } = &self.settings;
        let delivered = again.deliver(&entry.item.delivery, own);
        Some(self.told(&entry.item.event_id, "delivered again", delivered))
    }

    fn send(&self, id: &str, body: Bytes) -> Option<Result<Value, String>> {
        let changed = changed(&self.find(id)?.item.delivery, body);
        let Settings { again, own, .. } = &self.settings;
        let event_id = Item::new(0, changed.clone()).event_id;
        let delivered = again.deliver(&changed, own);
        Some(self.told(&event_id, "delivered with this body", delivered))
    }
}

/// A delivery in the form of the emulator's list. The sender's attempts are deliveries of their own
/// here, and the keys of this command belong to no subscription.
fn summary(Entry { id, item }: &Entry) -> Value {
    let answer = item.delivery.answer.as_ref();
    let hung_up = answer.is_none().then_some("the sender hung up");
    json!({
        "number": item.number,
        "id": **id,
        "eventId": item.event_id,
        "eventType": item.event_type,
        "subscriptionId": null,
        "subject": item.subject,
        "reason": reason(item),
        "authentic": item.authentic,
        "state": item.verdict.word(),
        "nextAttemptAt": null,
        "attempts": [{
            "at": iso8601(item.delivery.received_at),
            "status": answer.map(|answer| answer.status),
            "error": hung_up,
            "meaning": answer.filter(|answer| answer.status / 100 != 2 && answer.body.is_none()).map(|answer| meaning(answer.status)),
            "durationMs": item.elapsed_ms,
        }],
    })
}

/// Returns why a delivery was not accepted. If its run failed, this is what the server answered.
fn reason(item: &Item) -> Option<String> {
    let reason = Some(item.short_reason()).filter(|reason| !reason.is_empty());
    item.answered().or(reason.map(str::to_owned))
}

fn detail(entry: &Entry, own: &Uri) -> Value {
    let mut detail = summary(entry);
    let item = &entry.item;
    let delivery = &item.delivery;
    let body = delivery.body.as_ref();
    let shown = body.map(|body| &body[..body.len().min(LONGEST_BODY)]);
    let host = own.authority().map_or("", http::uri::Authority::as_str);
    let url = format!("http://{host}{}", delivery.target);
    let attempt = &mut detail["attempts"][0];
    attempt["fault"] = Value::Null;
    attempt["answer"] = json!(delivery.answer.as_ref().map(|answer| json!({
        "status": answer.status,
        "headers": headers(&answer.headers),
        "body": answer_text(answer).and_then(Result::ok),
        "note": answer_text(answer).and_then(Result::err),
        "bytes": answer.body_bytes,
    })));
    attempt["request"] = json!({
        "method": delivery.method,
        "url": url,
        "headers": headers(&delivery.headers),
        "body": shown.map(String::from_utf8_lossy),
        "bytes": body.map(|body| body.len()).filter(|length| *length > LONGEST_BODY),
    });
    detail["reason"] = json!(Some(item.short_reason()).filter(|reason| !reason.is_empty()));
    detail["facts"] = json!(facts(item));
    detail
}

fn headers(headers: &[(String, Bytes)]) -> Vec<[String; 2]> {
    let shown = headers
        .iter()
        .map(|(name, value)| [name.clone(), header(name, value)]);
    shown.collect()
}

fn facts(item: &Item) -> Vec<[String; 2]> {
    let answer = item.delivery.answer.as_ref();
    let fact = |name: &str, text: Option<String>| text.map(|text| [name.to_owned(), text]);
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let claimed =
        some(&item.claimed).map(|id| format!("{id}, unproven: any client can send any id"));
    [
        fact(
            "Verdict",
            Some(format!("{} ({})", item.verdict.says(), item.outcome)),
        ),
        fact("Event", some(&item.event_id)),
        fact("Came at", Some(iso8601(item.delivery.received_at))),
        fact("Signed by", answer.and_then(|answer| answer.key.clone())),
        fact(
            "Attempt",
            answer
                .and_then(|answer| answer.attempt)
                .map(|number| format!("probably {number}, by the event's age")),
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
    use hookgate::Secret;
    use hookgate::clock::UnixSeconds;
    use hookgate_record::LoggedAnswer;
    use hookgate_testing::Signer;

    use super::super::item::tests::{delivery, handled};
    use super::*;

    const SECRET: &str = "whsec_made_up_for_the_page";

    fn kept(most: usize) -> Kept {
        Kept::new(Settings {
            most,
            explainer: None,
            again: Again {
                client: crate::http_client::HttpClient::new().unwrap(),
                secret: Secret::new(SECRET).unwrap(),
            },
            own: Uri::from_static("http://127.0.0.1:9/webhooks"),
            forward: None,
            next: "hookgate send row.created --to http://127.0.0.1:9/webhooks".to_owned(),
            events: EventTypes::new(&[]),
        })
    }

    fn newest(kept: &Kept, limit: usize) -> Vec<Value> {
        kept.deliveries(&DeliveryFilter::default(), limit).0
    }

    #[test]
    fn the_newest_deliveries_are_kept_and_found_by_event_and_arrival() {
        let kept = kept(2);
        for id in ["evt_1", "evt_2", "evt_2"] {
            kept.push(handled(id));
        }
        let ids: Vec<_> = newest(&kept, 10)
            .iter()
            .map(|one| one["id"].clone())
            .collect();
        let at = "2025-11-21T01:53:20Z";
        assert_eq!(ids, [format!("evt_2@{at}.2"), format!("evt_2@{at}")]);
        assert_eq!(newest(&kept, 1).len(), 1);
        assert!(kept.delivery(&format!("evt_1@{at}")).is_none());
        assert!(kept.delivery("3").is_none());
        let shown = kept.delivery(&format!("evt_2@{at}")).unwrap();
        assert_eq!(shown["state"], "done");
        let totals = json!({ "kept": 2, "received": 3, "states": { "done": 2 }, "leftOut": 0 });
        assert_eq!(kept.totals(&kept.all()), totals);
        // An event's id alone is its newest delivery.
        let newest_of = kept.delivery("evt_2").unwrap();
        assert_eq!(newest_of["id"], format!("evt_2@{at}.2"));
        kept.push(delivery("no JSON", 401, "not_authentic"));
        assert_eq!(newest(&kept, 1)[0]["id"], format!("evt_header@{at}"));
        // No id is given twice, also where older ones are gone.
        for number in [3, 4, 5] {
            kept.push(handled("evt_2"));
            assert_eq!(newest(&kept, 1)[0]["id"], format!("evt_2@{at}.{number}"));
        }
    }

    // fault V6: a page's filter searches the newest 100 deliveries alone: a refused one behind them is not found, and "Nothing has arrived yet" stands beside "Show more"
    #[test]
    fn verdict_type_and_words_are_searched_for_among_all_that_are_kept() {
        let kept = kept(1_000);
        kept.push(delivery("{}", 401, "not_authentic"));
        for _ in 2..=300 {
            kept.push(handled("evt_1"));
        }
        let found = |state, event_type, search| {
            let filter = DeliveryFilter {
                state,
                event_type,
                search,
            };
            let found = kept.deliveries(&filter, 1_000).0;
            (found.len(), found.first().map(|one| one["number"].clone()))
        };
        let only = |number: u64| (1, Some(json!(number)));
        assert_eq!(found(Some("refused"), None, None), only(1));
        assert_eq!(found(Some("failed"), None, None), (0, None));
        assert_eq!(found(None, Some("Row."), None).0, 299);
        assert_eq!(found(None, None, Some("not_authentic 401")), only(1));
        assert_eq!(found(None, None, Some("evt_1 row_a")).0, 299);
        assert_eq!(found(None, None, Some("data.rowId:row_a")).0, 299);
        assert_eq!(found(Some("done"), Some("page."), Some("evt_1")).0, 0);
        // Each number is what its own state would leave of the search.
        let states = |state, search| {
            let filter = DeliveryFilter {
                state,
                event_type: None,
                search,
            };
            let (_, totals) = kept.deliveries(&filter, 1);
            (totals["kept"].clone(), totals["states"].clone())
        };
        let both = (json!(300), json!({ "done": 299, "refused": 1 }));
        assert_eq!(states(None, None), both);
        assert_eq!(states(Some("refused"), None), both);
        let refused = (json!(300), json!({ "refused": 1 }));
        assert_eq!(states(Some("done"), Some("not_authentic")), refused);
    }

    #[test]
    fn bodies_are_bounded_in_all_and_each() {
        let kept = kept(1_000);
        let long = "x".repeat(8 << 20);
        for _ in 1..=20 {
            kept.push(delivery(&long, 204, "handled"));
        }
        assert!(kept.items().bytes <= MAX_BYTES);
        let newest = newest(&kept, 1_000);
        assert!(newest.len() < 9);
        let shown = kept.delivery(newest[0]["id"].as_str().unwrap()).unwrap();
        let request = &shown["attempts"][0]["request"];
        assert_eq!(request["body"].as_str().unwrap().len(), LONGEST_BODY);
        assert_eq!(request["bytes"], long.len());
    }

    #[test]
    fn a_signature_is_cut_off_and_nothing_else() {
        let kept = kept(1);
        let mut signed = handled("evt_1");
        let whole = format!("sha256={}", "ab".repeat(32));
        signed
            .headers
            .push((SIGNATURE.to_owned(), whole.clone().into()));
        let text = detail(&kept.push(signed), &kept.settings.own).to_string();
        assert!(
            !text.contains(&whole) && text.contains("sha256=abababab…") && text.contains("made-up"),
            "{text}"
        );
    }

    /// The page must not be a way to a signature: a body that anyone sent would be accepted after
    /// its replay.
    #[test]
    fn what_was_refused_is_not_signed_by_a_replay() {
        let kept = kept(10);
        let entry = kept.push(delivery("{}", 401, "not_authentic"));
        let refused = kept.replay(&entry.id).unwrap().unwrap_err();
        assert!(refused.contains("not authentic"), "{refused}");
        assert!(kept.replay("2").is_none());
    }

    /// A line of a log can say anything.
    #[test]
    fn what_a_log_calls_authentic_is_so_only_if_our_key_signed_it() {
        let at = UnixSeconds::new(1_763_690_000);
        let signed_by = |secret: &str, body: &str| {
            let signer = Signer::new(Secret::new(secret).unwrap()).at(at);
            let mut delivery = LoggedDelivery::new(at, signer.headers(body), body.to_owned());
            let mut answer = LoggedAnswer::new(204, "handled");
            answer.key = Some("WEBHOOK_SECRET".to_owned());
            delivery.answer = Some(answer);
            delivery
        };
        let ours = signed_by(SECRET, r#"{"id":"evt_ours","type":"row.deleted"}"#);
        let other = signed_by(
            "whsec_made_up_and_another",
            r#"{"id":"evt_other","type":"row.deleted"}"#,
        );
        let log: DeliveryLog = [ours, other, handled("evt_bare")].into_iter().collect();
        let path = std::env::temp_dir().join(format!("hookgate-page-{}", std::process::id()));
        log.write_to(File::create(&path).unwrap()).unwrap();
        let kept = kept(2);
        let keys = Verifier::new(Secret::new(SECRET).unwrap());
        kept.load(&path, &keys).unwrap();
        assert_eq!(newest(&kept, 9).len(), 2);
        let kept = self::kept(9);
        kept.load(&path, &keys).unwrap();
        std::fs::remove_file(&path).unwrap();
        let authentic: Vec<_> = newest(&kept, 9)
            .iter()
            .map(|one| (one["eventId"].clone(), one["authentic"].clone()))
            .collect();
        let expected = [
            ("evt_bare", false),
            ("evt_other", false),
            ("evt_ours", true),
        ];
        assert_eq!(
            authentic,
            expected.map(|(id, authentic)| (json!(id), json!(authentic)))
        );
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
