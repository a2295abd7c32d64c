//! Safe by default: names in `Host`, foreign origins, the token, the policy of the page.

use hookgate_emulator::{Emulator, Seed};
use http::Request;
use serde_json::json;

use crate::Service;

// fault V1: a `Host` with a user name, or with a text behind the bracket or in place of the port, passes for this machine
#[tokio::test]
async fn a_foreign_name_in_host_is_refused_everywhere() {
    let service = Service::orders().await;
    let url = service.emulator.url();
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
            let request = Request::get(format!("{url}{path}")).header("host", host);
            service
                .send(request.body(String::new()).unwrap())
                .await
                .refused(403, "FORBIDDEN");
        }
    }
    let request = Request::get(format!("{url}/_emulator/switches")).header("host", "localhost:1");
    service
        .send(request.body(String::new()).unwrap())
        .await
        .data();
}

#[tokio::test]
async fn a_foreign_origin_changes_nothing() {
    let service = Service::orders().await;
    let url = service.emulator.url();
    for origin in ["https://example.com", "null", "http://localhost:1", ""] {
        for (method, path) in [
            ("POST", "/_emulator/reset"),
            ("PATCH", "/_emulator/switches"),
            ("POST", "/api/v1/blocks"),
            ("PUT", "/_emulator/snapshot"),
            ("POST", "/webhooks/wf_1"),
        ] {
            let request = Request::builder()
                .method(method)
                .uri(format!("{url}{path}"))
                .header("origin", origin);
            let request = request.header("authorization", "Bearer tk_test_admin");
            service
                .send(request.body("{}".to_owned()).unwrap())
                .await
                .refused(403, "FORBIDDEN");
        }
    }
    let own = Request::post(format!("{url}/_emulator/reset")).header("origin", &url);
    assert_eq!(
        service.send(own.body(String::new()).unwrap()).await.status,
        204
    );
    let foreign =
        Request::post(format!("{url}/_emulator/reset")).header("sec-fetch-site", "cross-site");
    service
        .send(foreign.body(String::new()).unwrap())
        .await
        .refused(403, "FORBIDDEN");
}

// fault V2: a page of another site runs a trigger that takes GET; `Sec-Fetch-Site` is read in lower case alone
#[tokio::test]
async fn a_foreign_site_reads_neither_control_nor_stream_and_may_link_to_the_page() {
    let service = Service::orders().await;
    let url = service.emulator.url();
    let foreign = [
        ("origin", "https://example.com"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "Same-Site"),
    ];
    for (name, value) in foreign {
        for path in ["stream", "snapshot", "deliveries", "clock"] {
            let request = Request::get(format!("{url}/_emulator/{path}")).header(name, value);
            let request = request.body(String::new()).unwrap();
            service.send(request).await.refused(403, "FORBIDDEN");
        }
        let page = Request::get(&url).header(name, value);
        let page = service.send(page.body(String::new()).unwrap()).await;
        assert_eq!(page.status, 200);
    }
}

// fault V2: a page of another site runs a trigger that takes GET; `Sec-Fetch-Site` is read in lower case alone
#[tokio::test]
async fn a_foreign_site_runs_no_trigger_that_takes_get() {
    let trigger =
        json!({ "triggers": [{ "workflowId": "wf_1", "method": "GET", "path": "/run" }] });
    let service = Service::seeded(&trigger.to_string()).await;
    let url = service.emulator.url();
    let call = async |path: &str, site: &str| {
        let request = Request::get(format!("{url}{path}")).header("sec-fetch-site", site);
        service.send(request.body(String::new()).unwrap()).await
    };
    for path in ["/webhooks/wf_1", "/run"] {
        for site in ["cross-site", "same-site", "Cross-Site"] {
            call(path, site).await.refused(403, "FORBIDDEN");
        }
    }
    let calls = service.control("GET", "triggers/calls", None).await.data();
    assert_eq!(calls, json!([]));
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
    let url = service.emulator.url();
    for path in ["/", "/api/v1/datamodels", "/_emulator/switches", "/none"] {
        let answer = service
            .send(
                Request::get(format!("{url}{path}"))
                    .body(String::new())
                    .unwrap(),
            )
            .await;
        let policy = answer.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert_eq!(answer.headers["x-content-type-options"], "nosniff");
        assert!(!answer.headers.contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn control_and_page_ask_for_the_token_where_there_is_one() {
    let emulator = Emulator::builder(Seed::orders())
        .token("made_up_token")
        .start()
        .await
        .unwrap();
    let service = Service::of(emulator);
    let url = service.emulator.url();
    for path in [
        "/",
        "/?token=wrong",
        "/_emulator/clock",
        "/_emulator/snapshot",
        "/_emulator/stream",
    ] {
        let request = Request::get(format!("{url}{path}"))
            .body(String::new())
            .unwrap();
        service.send(request).await.refused(401, "UNAUTHORIZED");
    }
    let with = |name: &'static str, value: &'static str| {
        Request::get(format!("{url}/_emulator/clock"))
            .header(name, value)
            .body(String::new())
            .unwrap()
    };
    service
        .send(with("authorization", "Bearer wrong"))
        .await
        .refused(401, "UNAUTHORIZED");
    assert_eq!(
        service
            .send(with("authorization", "Bearer made_up_token"))
            .await
            .status,
        200
    );
    assert_eq!(
        service
            .send(with("cookie", "a=b; hookgate_emulator_token=made_up_token"))
            .await
            .status,
        200
    );
    let page = service
        .send(
            Request::get(format!("{url}/?token=made_up_token"))
                .body(String::new())
                .unwrap(),
        )
        .await;
    assert_eq!(
        (page.status.as_u16(), &page.headers["location"]),
        (303, &"/".parse().unwrap())
    );
    let cookie = page.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    // The API has keys of its own.
    service.get("/datamodels").await.data();
}

#[tokio::test]
async fn no_list_shows_a_secret() {
    let service = Service::orders().await;
    let made =
        json!({ "name": "mine", "url": "http://127.0.0.1:1/webhooks", "events": ["row.created"] });
    let made = service
        .control("POST", "subscriptions", Some(made))
        .await
        .data();
    let secret = made["secret"].as_str().unwrap().to_owned();
    assert!(secret.starts_with("whsec_"));
    let controls = service.control("GET", "controls", None).await.data();
    for control in controls.as_array().unwrap() {
        let path = control["path"].as_str().unwrap();
        if control["method"] != "GET" || path == "snapshot" || path.contains('*') {
            continue;
        }
        let answer = service.control("GET", path, None).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        for hidden in [&*secret, "tk_test_admin", "made_up_for_local_tries"] {
            assert!(!text.contains(hidden), "{path} shows {hidden}");
        }
    }
    let snapshot = service.control("GET", "snapshot", None).await;
    assert!(String::from_utf8_lossy(&snapshot.body).contains(&secret));
}
