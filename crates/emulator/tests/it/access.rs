//! Safe by default: names in `Host`, foreign origins, the token, the policy of the page.

use hookgate_emulator::{Emulator, Seed};
use serde_json::json;

use crate::Service;
use crate::support::KEY;

// fault V1: a `Host` with a user name, or with a text behind the bracket or in place of the port, passes for this machine
#[tokio::test]
async fn a_foreign_name_in_host_is_refused_everywhere() {
    let service = Service::orders().await;
    for path in [
        "/",
        "/api/v1/datamodels",
        "/_emulator/switches",
        "/webhooks/wf_1",
    ] {
        for host in [
            "example.com",
            "127.0.0.1.example.com:80",
            "127.0.0.1:1@example.com",
            "[::1]example.com",
        ] {
            let answer = service.raw("GET", path, &[("host", host)], "").await;
            answer.refused(403, "FORBIDDEN");
        }
    }
    let own = [("host", "localhost:1")];
    service
        .raw("GET", "/_emulator/switches", &own, "")
        .await
        .data();
}

#[tokio::test]
async fn a_foreign_origin_changes_nothing() {
    let service = Service::orders().await;
    for origin in ["https://example.com", "null", "http://localhost:1", ""] {
        for (method, path) in [
            ("POST", "/_emulator/reset"),
            ("PATCH", "/_emulator/switches"),
            ("POST", "/api/v1/blocks"),
            ("PUT", "/_emulator/snapshot"),
            ("POST", "/webhooks/wf_1"),
        ] {
            let answer = service
                .raw(method, path, &[("origin", origin), KEY], "{}")
                .await;
            answer.refused(403, "FORBIDDEN");
        }
    }
    let reset = async |header| service.raw("POST", "/_emulator/reset", &[header], "").await;
    let own = service.emulator.url();
    assert_eq!(reset(("origin", &own)).await.status, 204);
    let foreign = reset(("sec-fetch-site", "cross-site")).await;
    foreign.refused(403, "FORBIDDEN");
}

// fault V2: a page of another site runs a trigger that takes GET; `Sec-Fetch-Site` is read in lower case alone
#[tokio::test]
async fn a_foreign_site_reads_neither_control_nor_stream_and_may_link_to_the_page() {
    let service = Service::orders().await;
    for header in [
        ("origin", "https://example.com"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "Same-Site"),
    ] {
        for path in ["stream", "snapshot", "deliveries", "clock"] {
            let path = format!("/_emulator/{path}");
            let answer = service.raw("GET", &path, &[header], "").await;
            answer.refused(403, "FORBIDDEN");
        }
        assert_eq!(service.raw("GET", "/", &[header], "").await.status, 200);
    }
}

// fault V2: a page of another site runs a trigger that takes GET; `Sec-Fetch-Site` is read in lower case alone
#[tokio::test]
async fn a_foreign_site_runs_no_trigger_that_takes_get() {
    let trigger = json!({ "workflowId": "wf_1", "method": "GET", "path": "/run" });
    let service = Service::seeded(&json!({ "triggers": [trigger] }).to_string()).await;
    let call = async |path, site| {
        service
            .raw("GET", path, &[("sec-fetch-site", site)], "")
            .await
    };
    for path in ["/webhooks/wf_1", "/run"] {
        for site in ["cross-site", "same-site", "Cross-Site"] {
            call(path, site).await.refused(403, "FORBIDDEN");
        }
    }
    assert_eq!(service.get("triggers/calls").await.data(), json!([]));
    // A person may open its address.
    assert_eq!(call("/run", "none").await.status, 200);
}

#[tokio::test]
async fn an_empty_token_is_refused_at_the_start() {
    for token in ["", "two words", "a;b", "ä"] {
        let started = Emulator::builder(Seed::orders()).token(token).start().await;
        let told = started.unwrap_err().to_string();
        assert!(told.contains("token"), "{told}");
    }
}

#[tokio::test]
async fn an_address_that_others_reach_is_refused_without_a_token() {
    let builder = || Emulator::builder(Seed::orders()).address(([0, 0, 0, 0], 0).into());
    let told = builder().start().await.unwrap_err().to_string();
    assert!(told.contains("set a token"), "{told}");
    builder().token("made_up_token").start().await.unwrap();
}

#[tokio::test]
async fn every_answer_has_the_policy_and_allows_no_other_site() {
    let service = Service::orders().await;
    for path in ["/", "/api/v1/datamodels", "/_emulator/switches", "/none"] {
        let answer = service.raw("GET", path, &[], "").await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        let is_closed = policy.starts_with("default-src 'none'") && !policy.contains("unsafe");
        assert!(is_closed, "{policy}");
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn control_and_page_ask_for_the_token_where_there_is_one() {
    let emulator = Emulator::builder(Seed::orders()).token("made_up_token");
    let service = Service::of(emulator.start().await.unwrap());
    let clock = "/_emulator/clock";
    for path in [
        "/",
        "/?token=wrong",
        clock,
        "/_emulator/snapshot",
        "/_emulator/stream",
    ] {
        let answer = service.raw("GET", path, &[], "").await;
        answer.refused(401, "UNAUTHORIZED");
    }
    for (name, value, status) in [
        ("authorization", "Bearer wrong", 401),
        ("authorization", "Bearer made_up_token", 200),
        ("cookie", "a=b; hookgate_emulator_token=made_up_token", 200),
    ] {
        let answer = service.raw("GET", clock, &[(name, value)], "").await;
        assert_eq!(answer.status, status, "{name}: {value}");
    }
    let page = service.raw("GET", "/?token=made_up_token", &[], "").await;
    assert_eq!(
        (page.status.as_u16(), &page.headers["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = page.headers["set-cookie"].to_str().unwrap();
    let is_strict = cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict");
    assert!(is_strict, "{cookie}");
    // The API has keys of its own.
    service.get("/datamodels").await.data();
}

#[tokio::test]
async fn no_list_shows_a_secret() {
    let service = Service::orders().await;
    let made =
        json!({ "name": "mine", "url": "http://127.0.0.1:1/webhooks", "events": ["row.created"] });
    let made = service.post("subscriptions", made).await.data();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("whsec_"));
    for control in service.controls().await {
        let Some(path) = control.strip_prefix("GET ") else {
            continue;
        };
        if path == "snapshot" || path.contains('*') {
            continue;
        }
        let text = service.get(path).await.text();
        for hidden in [secret, "tk_test_admin", "made_up_for_local_tries"] {
            assert!(!text.contains(hidden), "{path} shows {hidden}");
        }
    }
    assert!(service.get("snapshot").await.text().contains(secret));
}
