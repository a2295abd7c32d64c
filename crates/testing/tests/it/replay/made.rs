//! Logs to replay.

use hookgate::{Secret, clock::UnixSeconds};
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::{DeliveryLog, Replay, Signer};

/// Also what the example `receiver` takes with `--try`.
pub(super) const SECRET: &str = "whsec_made_up_for_local_tries";
pub(super) const NOW: i64 = 1_763_690_000;

pub(super) fn secret() -> Secret {
    Secret::new(SECRET).unwrap()
}

pub(super) fn body(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","type":"row.deleted","createdAt":"2025-11-21T01:53:20Z","workspaceId":"ws_1","data":{{"datamodelId":"dm_1","datamodelName":"Orders","rowId":"row_1","deletedBy":{{"id":"usr_1","name":"Ada"}}}}}}"#
    )
}

/// Received so many seconds after the beginning, signed a second before, and handled.
pub(super) fn logged(id: &str, after: i64) -> LoggedDelivery {
    logged_at(id, NOW + after, NOW + after - 1)
}

pub(super) fn logged_at(id: &str, received: i64, signed: i64) -> LoggedDelivery {
    let body = body(id);
    let headers = Signer::new(secret())
        .at(UnixSeconds::new(signed))
        .headers(&body);
    let mut logged = LoggedDelivery::new(UnixSeconds::new(received), headers, body);
    logged.target = "/webhooks".into();
    logged.answer = Some(answer(204, "handled"));
    logged
}

pub(super) fn answer(status: u16, outcome: &str) -> LoggedAnswer {
    let mut answer = LoggedAnswer::new(status, outcome);
    if outcome != "not_authentic" {
        answer.key = Some("primary".into());
        answer.scope = Some("default".into());
    }
    answer
}

/// Signed with another secret, and refused.
pub(super) fn forged(id: &str, after: i64) -> LoggedDelivery {
    let mut logged = logged(id, after);
    let other = Secret::new("whsec_made_up_by_somebody_else").unwrap();
    let body = body(id);
    let headers = Signer::new(other).at(logged.received_at).headers(&body);
    logged.headers = headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    logged.answer = Some(answer(401, "not_authentic"));
    logged
}

pub(super) fn log(deliveries: impl IntoIterator<Item = LoggedDelivery>) -> DeliveryLog {
    deliveries.into_iter().collect()
}

/// Some events over two minutes, one of them with a copy, and a forged delivery in between.
pub(super) fn small_log() -> DeliveryLog {
    let mut copy = logged("evt_2", 12);
    copy.answer = Some(answer(200, "replayed"));
    log([
        logged("evt_1", 0),
        logged("evt_2", 10),
        copy,
        forged("evt_9", 15),
        logged("evt_3", 60),
        logged("evt_4", 60),
        logged("evt_5", 120),
    ])
}

/// A replay of it by the secret that has signed it.
pub(super) fn play(log: DeliveryLog) -> Replay {
    Replay::of(log).secret(secret())
}
