//! AWS Lambda behind an API Gateway, whose events carry the body in base64: lambda_http decodes it,
//! and the verified bytes are the bytes that were sent.
//!
//! ```sh
//! cargo build --release -p hookgate-frameworks --example lambda_http   # then package it as the function's `bootstrap`
//! ```
//!
//! It runs where Lambda's runtime API is, which `AWS_LAMBDA_RUNTIME_API` names; the test provides a
//! small one.
//!
//! **Guarantees:** authentic, fresh, bounded; and no event is lost. Lambda freezes a process as
//! soon as it has answered, so a run that takes longer than its budget would be frozen with its
//! claim. So this answers only when the run ends; the sender sees that as a time-out, and its retry
//! gets the answer of a replay. **Note:**
//! - **Once** is per execution environment with the store used here. Lambda starts many, and drops
//!   them at any time: a function that must not run an event twice needs a store that all of them
//!   reach, such as DynamoDB. See `DedupeStore`.
//! - The function's time-out must exceed `run_limit`, or Lambda kills a run without a release. Its
//!   default of 3 s is below both.
//! - The whole body has arrived before Lambda is called: the head can't be refused first, and the
//!   limits of Lambda and its gateway, some megabytes, apply before the receiver's.
//! - API Gateway joins duplicate headers with a comma. A signed value has no comma in it, so they
//!   are refused here too.

#![allow(clippy::print_stdout)] // an example prints for its user

use std::convert::Infallible;
use std::time::Duration;

use hookgate::{Event, EventData, HandlerError, MemoryStore, Receiver, Secret, layer::Answer};
use hookgate_frameworks::Ledger;
use http::StatusCode;
use http_body_util::Full;
use lambda_http::{Error, Request, service_fn};

/// A row of the data model `Orders`.
#[derive(serde::Deserialize)]
struct Order {
    #[serde(rename = "Customer")]
    customer: String,
}

async fn on_event(event: Event<Order>, ledger: Ledger) -> Result<StatusCode, HandlerError> {
    if let EventData::RowCreated(row) = event.data {
        let order = format!("{} {}", event.id, row.properties.customer);
        ledger.book(order).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let receiver = Receiver::builder()
        .secret(Secret::from_env("WEBHOOK_SECRET")?)
        .store(MemoryStore::default())
        .run_limit(Duration::from_secs(20)) // below the function's time-out, here 30 s
        .on_answer(|answer: &Answer| println!("{answer}"))
        .build()?;
    let ledger = Ledger::from_env();
    // Glue begins.
    lambda_http::run(service_fn(move |request: Request| {
        let (receiver, ledger) = (receiver.clone(), ledger.clone());
        async move {
            let answer = receiver
                .handle(request, |event| on_event(event, ledger))
                .await;
            while receiver.runs() > 0 {
                tokio::time::sleep(Duration::from_millis(25)).await;
            }
            Ok::<_, Infallible>(answer.map(Full::new))
        }
    }))
    .await
    // Glue ends.
}
