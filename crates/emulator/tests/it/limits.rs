//! *Limits*: the request rate and its headers.

use hookgate::clock::Clock;
use hookgate_emulator::Seed;
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
    let slow_down = service.get("/datamodels").await;
    slow_down.refused(429, "RATE_LIMITED");
    service.advance("60s").await;
    let answer = service.get("/datamodels").await;
    answer.data();
    assert_eq!(answer.number("x-ratelimit-remaining"), 59);
}

/// The end of a window is told in the emulator's time. A client that compares it with `Date` knows
/// how long to wait.
// fault M7: an emulator whose time was advanced tells the end of a rate's window beside the real date: a client waits too long, or not at all
#[tokio::test]
async fn answers_have_the_date_of_the_emulators_clock() {
    let service = Service::by_hand(Seed::orders()).await;
    for date in [
        "Sat, 21 Nov 2026 09:30:00 GMT",
        "Mon, 23 Nov 2026 09:30:00 GMT",
    ] {
        assert_eq!(service.get("/datamodels").await.headers["date"], date);
        service.advance("2d").await;
    }
}

#[tokio::test]
async fn the_rate_is_counted_by_key_or_by_workspace() {
    let service = of_tier("standard").await;
    let by_other = || service.api_as("tk_test_b", "GET", "/datamodels", None);
    for _ in 0..61 {
        service.get("/datamodels").await;
    }
    by_other().await.data();
    service.switch("rateCountedBy", "workspace").await;
    for _ in 0..60 {
        service.get("/datamodels").await.data();
    }
    by_other().await.refused(429, "RATE_LIMITED");
}

#[tokio::test]
async fn the_rate_can_be_switched_off() {
    let service = of_tier("standard").await;
    service.switch("rateLimit", "off").await;
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
