//! The events of rows.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use hookgate::Delivery;
use hookgate_order::{LastHandled, Order, OrderGuard};

/// An update of the row in this second: 24 h at most.
pub fn updated(row: &str, second: u32) -> Delivery {
    event(row, second, &moment(second), RowChange::Updated)
}

/// An update whose `createdAt` can't be read.
pub fn undated(row: &str) -> Delivery {
    event(row, 0, "", RowChange::Updated)
}

/// The event of a row in this second, of a row that is created and deleted again and again.
pub fn in_its_lives(row: &str, second: u32) -> Delivery {
    event(row, second, &moment(second), RowChange::of_second(second))
}

/// An event that is not about a row.
pub fn page_created() -> Delivery {
    let page =
        r#"{"id":"evt_1","type":"page.created","createdAt":"2026-11-21T09:30:00Z","data":{}}"#;
    hookgate_testing::delivery(page).unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RowChange {
    Created,
    Updated,
    Deleted,
}

impl RowChange {
    /// A life has eight seconds, with an event in each.
    fn of_second(second: u32) -> Self {
        match second % 8 {
            0 => Self::Created,
            7 => Self::Deleted,
            _ => Self::Updated,
        }
    }
}

/// The order that each event of [`in_its_lives`] has, by those that were handled before it.
#[derive(Default)]
pub struct ExpectedOrder {
    newest: Option<u32>,
    /// The newest deletion was handled, and no creation since that may be newer.
    is_deleted: bool,
    /// The newest event updated a deleted row.
    is_doubtful: bool,
}

impl ExpectedOrder {
    /// Takes the next event that is handled.
    pub fn next(&mut self, second: u32) -> Order {
        let change = RowChange::of_second(second);
        match self
            .newest
            .map_or(Ordering::Greater, |newest| second.cmp(&newest))
        {
            Ordering::Less => {
                if change == RowChange::Created && self.is_doubtful {
                    self.is_deleted = false;
                }
                Order::Stale
            }
            // The same event again.
            Ordering::Equal if self.is_doubtful => Order::Unknown,
            Ordering::Equal => Order::Newest,
            Ordering::Greater => {
                self.newest = Some(second);
                self.is_doubtful = change == RowChange::Updated && self.is_deleted;
                match change {
                    RowChange::Created => self.is_deleted = false,
                    RowChange::Updated if self.is_deleted => return Order::Unknown,
                    RowChange::Updated => {}
                    RowChange::Deleted => self.is_deleted = true,
                }
                Order::Newest
            }
        }
    }

    pub fn newest(&self) -> Option<u32> {
        self.newest
    }
}

fn moment(second: u32) -> String {
    let (hour, minute, rest) = (second / 3_600, second / 60 % 60, second % 60);
    format!("2026-11-21T{hour:02}:{minute:02}:{rest:02}Z")
}

fn event(row: &str, second: u32, at: &str, change: RowChange) -> Delivery {
    let (kind, data) = match change {
        RowChange::Created => (
            "created",
            format!(r#","properties":{{"Second":{second}}},"createdBy":null"#),
        ),
        RowChange::Updated => (
            "updated",
            format!(r#","changes":{{"Second":{{"after":{second}}}}},"updatedBy":null"#),
        ),
        RowChange::Deleted => ("deleted", String::new()),
    };
    let json = format!(
        r#"{{"id":"evt_{row}_{second}","type":"row.{kind}","createdAt":"{at}","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"{row}"{data}}}}}"#
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
