//! Which deliveries a subscription gets, and in which order.

use super::*;

#[tokio::test(start_paused = true)]
async fn subscriptions_take_their_events_and_no_others() {
    let room = room(200);
    let deliveries = &room.deliveries;
    deliveries.remove("wh_1");
    let create = |id: &str, rest: Value| {
        let mut body = json!({ "id": id, "url": "/webhooks", "secret": SECRET });
        body.as_object_mut()
            .unwrap()
            .extend(rest.as_object().unwrap().clone());
        deliveries.create(&body).unwrap();
    };
    create("wh_all", json!({}));
    create("wh_type", json!({ "events": ["page.created"] }));
    create("wh_model", json!({ "dataModelId": "dm_orders" }));
    create("wh_none", json!({ "events": [] }));
    create("wh_off", json!({ "disabled": true }));
    deliveries.emit(&event_of("evt_row", "row.created", Some("dm_orders")));
    deliveries.emit(&event_of("evt_other", "row.created", Some("dm_clients")));
    deliveries.emit(&event_of("evt_page", "page.created", None));
    deliveries.settled().await;
    let takers = |id: &str| -> Vec<String> {
        let records = deliveries.records(Some(id));
        let mut ids: Vec<_> = records
            .into_iter()
            .map(|record| record.subscription_id)
            .collect();
        ids.sort();
        ids
    };
    assert_eq!(takers("evt_row"), ["wh_all", "wh_model"]);
    assert_eq!(takers("evt_other"), ["wh_all"]);
    assert_eq!(takers("evt_page"), ["wh_all", "wh_type"]);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_or_disabled_subscription_gets_no_retry() {
    for remove in [true, false] {
        let room = room(500);
        room.emit("evt_1");
        room.deliveries.settled().await;
        if remove {
            assert!(room.deliveries.remove("wh_1"));
            assert!(!room.deliveries.remove("wh_1"));
        } else {
            let patch = json!({ "disabled": true });
            room.deliveries.change("wh_1", &patch).unwrap().unwrap();
        }
        let record = room.record("evt_1");
        assert_eq!(record.state, DeliveryState::Discarded);
        assert!(
            record
                .reason
                .unwrap()
                .contains(if remove { "deleted" } else { "disabled" })
        );
        assert_eq!(room.advance("3d").await, 0);
        assert!(room.deliveries.redeliver(&record.id).unwrap().is_err());
        room.emit("evt_2");
        room.deliveries.settled().await;
        assert_eq!(room.times(), [0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_under_way_ends_although_its_subscription_is_deleted() {
    let room = room_on(ManualClock::at(START), |_, _| (200, Duration::from_secs(2)));
    room.emit("evt_1");
    sleep(Duration::from_secs(1)).await;
    room.deliveries.remove("wh_1");
    assert_eq!(room.state("evt_1"), DeliveryState::Discarded);
    room.deliveries.settled().await;
    assert_eq!(room.state("evt_1"), DeliveryState::Delivered);
}

#[tokio::test(start_paused = true)]
async fn one_by_one_waits_for_the_retries_of_the_one_before() {
    let room = room_on(ManualClock::at(START), |number, _| {
        (if number <= 2 { 500 } else { 200 }, Duration::ZERO)
    });
    room.parts
        .switches
        .set("deliveryOrder", &json!("oneByOne"))
        .unwrap();
    for id in ["evt_1", "evt_2", "evt_3"] {
        room.emit(id);
    }
    room.deliveries.settled().await;
    assert_eq!(room.ids(), ["evt_1"]);
    room.advance("10m").await;
    assert_eq!(room.ids(), ["evt_1", "evt_1", "evt_1", "evt_2", "evt_3"]);
    assert_eq!(room.times(), [0, 60, 360, 360, 360]);
}

#[tokio::test(start_paused = true)]
async fn shuffled_deliveries_come_in_an_order_that_the_ids_decide() {
    let orders: Vec<_> = [(); 2]
        .map(|()| async {
            let room = room(200);
            room.parts
                .switches
                .set("deliveryOrder", &json!("shuffled"))
                .unwrap();
            for number in 0..50 {
                room.emit(&format!("evt_{number:02}"));
            }
            assert_eq!(room.advance("1s").await, 50);
            room.ids()
        })
        .into();
    let mut orders = orders.into_iter();
    let (one, two) = (orders.next().unwrap().await, orders.next().unwrap().await);
    assert_eq!(one, two);
    assert!(!one.is_sorted());
}
