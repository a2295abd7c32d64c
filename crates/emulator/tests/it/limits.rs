//! *Limits*: the request rate and its headers.

use std::time::Duration;

use hookgate::clock::{Clock, ManualClock, UnixSeconds};
use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

use crate::Service;

async fn of_tier(tier: &str) -> Service {
    let seed = json!({
        "workspace": { "id": "ws_1", "tier": tier },
        "keys": [{ "name": "a", "key": "tk_test_admin", "scope": "admin" }, { "name": "b", "key": "tk_test_b", "scope": "read" }],
    });
    Service::seeded(&seed.to_string()).await
}

#[tokio::test]
async fn the_tiers_have_60_60_and_1000_requests_a_minute() {
    for (tier, limit) in [("standard", 60), ("premium", 60), ("enterprise", 1_000)] {
        let service = of_tier(tier).await;
        let now = service.emulator.clock().now().as_i64();
        for used in 1..=limit {
            let answer = service.get("/datamodels").await;
            answer.data();
            assert_eq!(answer.number("x-ratelimit-limit"), limit);
            assert_eq!(answer.number("x-ratelimit-remaining"), limit - used);
            let left = answer.number("x-ratelimit-reset") - now;
            assert!((60..=62).contains(&left), "{left}");
        }
        let answer = service.get("/datamodels").await;
        let message = answer.refused(429, "RATE_LIMITED");
        assert!(message.contains("slow down"), "{message}");
        assert_eq!(answer.number("x-ratelimit-remaining"), 0);
    }
}

#[tokio::test]
async fn the_window_follows_the_emulators_time() {
    let service = of_tier("standard").await;
    for _ in 0..60 {
        service.get("/datamodels").await.data();
    }
    service
        .get("/datamodels")
        .await
        .refused(429, "RATE_LIMITED");
    service
        .control("POST", "clock/advance", Some(json!({ "by": "60s" })))
        .await;
    let answer = service.get("/datamodels").await;
    answer.data();
    assert_eq!(answer.number("x-ratelimit-remaining"), 59);
}

/// The end of a window is told in the emulator's time. A client that compares it with `Date` knows how long to wait.
// fault M7: an emulator whose time was advanced tells the end of a rate's window beside the real date: a client waits too long, or not at all
#[tokio::test]
async fn answers_have_the_date_of_the_emulators_clock() {
    let emulator = Emulator::builder(Seed::orders())
        .clock(ManualClock::at(UnixSeconds::new(1_795_253_400)))
        .start()
        .await
        .unwrap();
    let service = Service::of(emulator);
    for date in [
        "Sat, 21 Nov 2026 09:30:00 GMT",
        "Mon, 23 Nov 2026 09:30:00 GMT",
    ] {
        assert_eq!(service.get("/datamodels").await.headers["date"], date);
        service
            .emulator
            .advance(Duration::from_secs(2 * 86_400))
            .await;
    }
}

#[tokio::test]
async fn the_rate_is_counted_by_key_or_by_workspace() {
    let service = of_tier("standard").await;
    for _ in 0..61 {
        service.get("/datamodels").await;
    }
    service
        .api_as("tk_test_b", "GET", "/datamodels", None)
        .await
        .data();
    service
        .control(
            "PATCH",
            "switches",
            Some(json!({ "rateCountedBy": "workspace" })),
        )
        .await
        .data();
    for _ in 0..60 {
        service.get("/datamodels").await.data();
    }
    service
        .api_as("tk_test_b", "GET", "/datamodels", None)
        .await
        .refused(429, "RATE_LIMITED");
}

#[tokio::test]
async fn the_rate_can_be_switched_off() {
    let service = of_tier("standard").await;
    service
        .control("PATCH", "switches", Some(json!({ "rateLimit": "off" })))
        .await
        .data();
    for _ in 0..70 {
        service.get("/datamodels").await.data();
    }
}

#[tokio::test]
async fn errors_of_a_valid_key_have_the_headers_too() {
    let service = of_tier("standard").await;
    for (key, method, path) in [
        ("tk_test_admin", "GET", "/none"),
        ("tk_test_b", "POST", "/blocks"),
        ("tk_test_admin", "POST", "/blocks"),
    ] {
        let answer = service.api_as(key, method, path, None).await;
        assert!(!answer.status.is_success());
        assert_eq!(answer.number("x-ratelimit-limit"), 60);
    }
}
