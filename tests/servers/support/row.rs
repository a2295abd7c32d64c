//! The events of rows.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use hookgate::Delivery;
use hookgate::order::{LastHandled, Order, OrderGuard};

/// An update of the row in this second: 24 h at most.
pub fn updated(row: &str, second: u32) -> Delivery {
    let (hour, minute, rest) = (second / 3_600, second / 60 % 60, second % 60);
    let at = format!("2026-11-21T{hour:02}:{minute:02}:{rest:02}Z");
    updated_at(row, second, &at)
}

/// An update whose `createdAt` can't be read.
pub fn undated(row: &str) -> Delivery {
    updated_at(row, 0, "")
}

fn updated_at(row: &str, second: u32, at: &str) -> Delivery {
    let json = format!(
        r#"{{"id":"evt_{row}_{second}","type":"row.updated","createdAt":"{at}","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"{row}","changes":{{"Second":{{"after":{second}}}}},"updatedBy":null}}}}"#
    );
    hookgate_testing::delivery(json).unwrap()
}

/// A record without properties.
pub fn record(event: u8) -> LastHandled {
    let parts = [
        &[1, 0][..],
        &[0; 8],
        &1_000_000_u32.to_be_bytes(),
        &[event; 16],
        &[1],
    ];
    LastHandled::from_bytes(&parts.concat()).unwrap()
}

/// The order that a guard tells the handler of this row's event.
pub async fn told(guard: &OrderGuard, row: &str, second: u32) -> Order {
    let told = Arc::new(Mutex::new(None));
    let handler = guard.ordered({
        let told = Arc::clone(&told);
        move |_: Delivery, order: Order| {
            *told.lock().unwrap() = Some(order);
            async { StatusCode::NO_CONTENT }
        }
    });
    let answer = handler(updated(row, second)).await;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    told.lock().unwrap().unwrap()
}
