use crate::{Receives, Served};
#[tokio::test(flavor = "multi_thread")]
#[ignore]
async fn look() {
    let receiver = Receives::start().await;
    let service = Served::delivering_to(&receiver.url).await;
    let screen = open!(&service.page("rows/dm_orders"));
    screen.until_there("[data-row=row_order_3]").await;
    for n in 0..3 { if n==1 {receiver.answer(500)} else {receiver.answer(204)}
    service.control("PATCH", "models/dm_orders/rows/row_order_1", Some(serde_json::json!({"values": {"prop_quantity": 40+n}}))).await; tokio::time::sleep(std::time::Duration::from_millis(200)).await; }
    service.control("POST", "faults", Some(serde_json::json!({"fault": "altered-byte", "first": 2}))).await;
    service.control("PATCH", "models/dm_orders/rows/row_order_2", Some(serde_json::json!({"values": {"prop_quantity": 7}}))).await;
    for _ in 0..5 { service.request("GET /api/v1/datamodels HTTP/1.1\r\nauthorization: Bearer tk_test_read", None).await; }
    service.request("GET /api/v1/datamodels/none HTTP/1.1\r\nauthorization: Bearer tk_test_read", None).await;
    service.request("POST /webhooks/wf_1?from=shop HTTP/1.1\r\nx-api-key: made_up_for_local_tries\r\ncontent-type: application/json", Some(serde_json::json!({"a": 1}))).await;
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let save = |name: String, bytes: Vec<u8>| std::fs::write(format!("/tmp/shots/{name}.png"), bytes).unwrap();
    std::fs::create_dir_all("/tmp/shots").unwrap();
    for scheme in ["light", "dark"] {
        screen.scheme(scheme).await;
        for part in ["rows", "webhooks", "keys", "requests", "triggers", "faults", "workspace"] {
            screen.eval(&format!("location.hash = '{part}'")).await;
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
            if part == "webhooks" { screen.click("[data-delivery]").await; tokio::time::sleep(std::time::Duration::from_millis(300)).await;
              screen.press(".detail", "Why was it refused?").await; tokio::time::sleep(std::time::Duration::from_millis(900)).await; screen.eval("scrollTo(0,0)").await; }
            save(format!("{scheme}-{part}"), screen.picture().await);
        }
    }
    screen.scheme("light").await;
    screen.size(400, 800).await;
    for part in ["rows", "webhooks", "keys", "requests", "triggers", "faults", "workspace"] {
        screen.eval(&format!("location.hash = '{part}'")).await;
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        println!("{part} {}", screen.eval("[document.documentElement.scrollWidth, ...[...document.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > 401 && !one.closest('.scroll')).map((one) => one.tagName + '.' + one.className + '.' + one.textContent.slice(0, 30))].join('|')").await);
        save(format!("narrow-{part}"), screen.picture().await);
    }
    screen.size(1280, 900).await;
    screen.eval("location.hash = 'webhooks'").await;
    screen.press("main", "New webhook").await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    save("form".into(), screen.picture().await);
    println!("{:?}", screen.problems());
}
