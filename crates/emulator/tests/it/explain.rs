//! Why a delivery was refused, and the list of the newest deliveries.

use hookgate_emulator::{Emulator, Seed};
use serde_json::{Value, json};

use crate::Service;
use crate::deliveries::{SECRET, receiver};
use crate::support::count;

/// An emulator that delivers to a receiver of hookgate at the real time.
async fn delivering() -> Service {
    let (_, url) = receiver(None).await;
    let seed = Seed::orders().subscription("wh_1", &url, SECRET).unwrap();
    let emulator = Emulator::builder(seed).real_signatures().start().await;
    Service::of(emulator.unwrap())
}

impl Service {
    /// Sends a test event, and explains it.
    async fn explained(&self, secret: Option<&str>) -> Value {
        let test = json!({ "subscriptionId": "wh_1" });
        let sent = self.post("events/test", test).await.data();
        let path = format!("deliveries/{}/explain", sent["id"].as_str().unwrap());
        let asked = secret.map_or(json!({}), |secret| json!({ "secret": secret }));
        let answer = self.post(&path, asked).await;
        let text = answer.text();
        let is_told = text.contains(SECRET) || text.contains("sha256=");
        assert!(!is_told, "{text}");
        answer.data()
    }

    async fn fault(&self, name: &str) {
        let fault = json!({ "fault": name, "first": 1 });
        self.post("faults", fault).await.data();
    }
}

#[tokio::test]
async fn an_explanation_names_the_fault_and_what_the_request_shows_of_it() {
    let service = delivering().await;
    for (fault, shown) in [
        ("altered-byte", "altered in a way that can't be undone"),
        ("wrong-secret", "fault wrong-secret"),
        ("stale", "one mistake"),
        ("ahead", "one mistake"),
    ] {
        service.fault(fault).await;
        let explained = service.explained(None).await;
        assert_eq!(explained["authentic"], false, "{fault}: {explained}");
        assert!(
            explained.to_string().contains(shown),
            "{fault}: {explained}"
        );
        let remark = explained["remarks"][0].as_str().unwrap();
        assert!(
            remark.starts_with(&format!("The fault {fault} ")),
            "{remark}"
        );
    }
    service.fault("reset").await;
    let explained = service.explained(None).await;
    assert_eq!(explained["authentic"], true, "{explained}");
    let remark = explained["remarks"][1].as_str().unwrap();
    assert!(remark.starts_with("There was no answer"), "{explained}");
    let explained = service.explained(None).await;
    assert_eq!(explained["remarks"], json!(["It was accepted."]));
}

#[tokio::test]
async fn a_mistake_in_the_receivers_secret_is_found_with_that_secret() {
    let service = delivering().await;
    for (secret, cause) in [
        (format!("\"{SECRET}\""), "quot"),
        (format!("{SECRET}\n"), "line"),
        ("whsec_made_up_of_another_webhook".to_owned(), "secret"),
    ] {
        let explained = service.explained(Some(&secret)).await;
        let causes = &explained["causes"];
        assert_eq!(count(causes), 1, "{explained}");
        let told = causes[0].to_string().to_lowercase();
        assert!(told.contains(cause), "{secret:?}: {told}");
    }
    let right = service.explained(Some(SECRET)).await;
    assert_eq!(right["authentic"], true, "{right}");
}

#[tokio::test]
async fn a_delivery_that_is_not_there_or_has_no_attempt_is_not_explained() {
    let service = delivering().await;
    let path = "deliveries/dlv_none/explain";
    service.post(path, json!({})).await.not_found();
    service.post(path, json!({ "key": "x" })).await.invalid();
    service.fault("slow").await;
    let values = json!({ "values": { "prop_quantity": 8 } });
    let row = "models/dm_orders/rows/row_order_1";
    service.patch(row, values).await.data();
    let waiting = service.get("deliveries").await.data();
    let path = format!("deliveries/{}/explain", waiting[0]["id"].as_str().unwrap());
    let early = service.post(&path, json!({})).await;
    early.refused(409, "CONFLICT");
}
