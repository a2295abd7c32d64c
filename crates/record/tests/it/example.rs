//! The example `recorded`, as a process.

use std::io::Write as _;
use std::net::TcpStream;

use hookgate_testing::DeliveryLog;

use crate::Folder;
use crate::process::{Example, own_secret, row_created};

#[test]
fn recorded_takes_the_published_secret_only_with_try() {
    let folder = Folder::new();
    let path = folder.path("deliveries.jsonl");
    let record = ("RECORD", path.to_str().unwrap());
    let published = "whsec_made_up_for_local_tries";
    for (variables, expected) in [
        (&[record][..], "WEBHOOK_SECRET"),
        (
            &[record, ("WEBHOOK_SECRET", published)],
            "WEBHOOK_SECRET: this secret is published",
        ),
    ] {
        let said = Example::refused("recorded", variables);
        assert!(said.contains(expected), "{said}");
    }
    let mut example = Example::start_with("recorded", &["--try"], &[record]);
    example.line_with("anyone can sign with it");
    let body = row_created("evt_try", "{}");
    assert_eq!(example.deliver(published, &body).status, 204);
}

#[cfg(unix)]
#[test]
fn recorded_writes_each_delivery_with_its_answer_and_ends_with_the_whole_log() {
    let folder = Folder::new();
    let path = folder.path("deliveries.jsonl");
    let record = path.to_str().unwrap();
    let mut example = Example::start(
        "recorded",
        &[("WEBHOOK_SECRET", own_secret()), ("RECORD", record)],
    );
    let body = row_created("evt_1", "{}");
    assert_eq!(example.deliver(own_secret(), &body).status, 204);
    example.line_with("evt_1 row.created");
    assert_eq!(
        example.deliver("whsec_made_up_and_wrong", &body).status,
        401
    );
    let mut half_a_head = TcpStream::connect(&example.address).unwrap();
    half_a_head.write_all(b"POST /w HTTP/1.1\r\nHo").unwrap();
    assert!(example.terminate());
    example.line_with("stopped, 2 deliveries recorded, 0 dropped");
    let log = DeliveryLog::open(&path).unwrap();
    let answers = log
        .into_iter()
        .map(|delivery| delivery.answer.unwrap().status);
    assert_eq!(answers.collect::<Vec<_>>(), [204, 401]);
}
