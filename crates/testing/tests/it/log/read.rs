//! Lines and logs as they are read.

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery};
use hookgate_testing::log::{DeliveryLog, LogErrorKind, LoggedDeliveryExt};
use proptest::prelude::*;
use std::time::Duration;

use super::{delivery, delivery_of, ids};
use crate::says;

fn micros() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_micros)
}

prop_compose! {
    fn answers()(
        status in any::<u16>(),
        outcome in any::<String>(),
        reason in any::<Option<String>>(),
        elapsed in micros(),
        key in any::<Option<String>>(),
        scope in any::<Option<String>>(),
        attempt in any::<Option<u32>>(),
        claimed in any::<Option<String>>(),
        response in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
    ) -> LoggedAnswer {
        let mut answer = LoggedAnswer::new(status, &outcome);
        (answer.reason, answer.elapsed, answer.attempt) = (reason, elapsed, attempt);
        (answer.key, answer.scope, answer.claimed_subscription) = (key, scope, claimed);
        if let Some(body) = response {
            answer.headers = vec![("x-from-there".to_owned(), body.clone().into())];
            (answer.body, answer.body_bytes) = (Some(body.into()), Some(u64::from(status)));
        }
        answer
    }
}

prop_compose! {
    fn deliveries()(
        received_at in any::<i64>(),
        method in any::<String>(),
        target in any::<String>(),
        headers in prop::collection::vec((any::<String>(), prop::collection::vec(any::<u8>(), 0..20)), 0..5),
        body in any::<Option<Vec<u8>>>(),
        text in any::<String>(),
        is_text in any::<bool>(),
        cut_off_at in any::<Option<u64>>(),
        answer in prop::option::of(answers()),
        hung_up_after in prop::option::of(micros()),
        unverifiable in any::<bool>(),
    ) -> LoggedDelivery {
        let mut delivery = LoggedDelivery::new(UnixSeconds::new(received_at), [("", ""); 0], text);
        // In lower case, as an entry's names are.
        delivery.headers = headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value.into())).collect();
        (delivery.method, delivery.target) = (method, target);
        if !is_text {
            delivery.body = body.map(Into::into);
        }
        (delivery.cut_off_at, delivery.answer) = (cut_off_at, answer);
        (delivery.hung_up_after, delivery.unverifiable) = (hung_up_after, unverifiable);
        delivery
    }
}

proptest! {
    #[test]
    fn any_delivery_comes_back_from_its_line(deliveries in prop::collection::vec(deliveries(), 0..4)) {
        let log: DeliveryLog = deliveries.into_iter().collect();
        let mut file = Vec::new();
        log.write_to(&mut file).unwrap();
        prop_assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), log.len());
        prop_assert_eq!(&DeliveryLog::read(&*file).unwrap(), &log);
        // With other line breaks, empty lines and a mark at its beginning, too.
        let crlf = String::from_utf8(file).unwrap().replace('\n', "\r\n\r\n  \r\n");
        let crlf = format!("\u{feff}{crlf}");
        prop_assert_eq!(&DeliveryLog::read(crlf.as_bytes()).unwrap(), &log);
    }

    #[test]
    fn a_log_cut_anywhere_gives_the_lines_before(cut in 0_usize..3_000, body in any::<Vec<u8>>()) {
        let log: DeliveryLog = ["evt_0", "evt_1"].map(delivery).into_iter().chain([delivery_of(body)]).collect();
        let mut file = Vec::new();
        log.write_to(&mut file).unwrap();
        let cut = cut % file.len();
        let read = DeliveryLog::read(&file[..cut]).unwrap();
        prop_assert_eq!(read.deliveries(), &log.deliveries()[..read.len()]);
        let whole = file[..cut].iter().filter(|byte| **byte == b'\n').count();
        let only_its_end_is_missing = file[cut] == b'\n';
        prop_assert_eq!(read.len(), whole + usize::from(only_its_end_is_missing));
        let at_an_end = cut == 0 || file[cut - 1] == b'\n';
        prop_assert_eq!(read.ended_torn(), !at_an_end && !only_its_end_is_missing);
    }

    #[test]
    fn whatever_a_file_holds_is_an_error_or_a_log(bytes in any::<Vec<u8>>()) {
        match DeliveryLog::read(&*bytes) {
            Ok(log) => prop_assert!(log.is_empty()),
            Err(error) => prop_assert_eq!(error.kind(), LogErrorKind::BadLine),
        }
    }
}

#[test]
fn a_bad_line_is_named_and_nothing_of_it_is_repeated() {
    let line = delivery("evt_0").to_line();
    for bad in [
        "no JSON whsec_made_up",
        r#"{"received_at":"whsec_made_up"}"#,
        r#"{"received_at":1,"method":"POST","target":"/","headers":[["a",{"base64":"whsec_made_up!"}]]}"#,
        "[]",
        "{",
        r#"{"dropped":"whsec_made_up"}"#,
    ] {
        let file = format!("{line}\n\n{bad}\n{line}\n");
        let error = DeliveryLog::read(file.as_bytes()).unwrap_err();
        assert_eq!(
            (error.kind(), error.line()),
            (LogErrorKind::BadLine, Some(3)),
            "{bad}"
        );
        let told = format!(
            "{error} {error:?} {}",
            std::error::Error::source(&error).unwrap()
        );
        assert!(!told.contains("made_up"), "{told}");
        // A reader that reads line by line may go on.
        let mut lines = DeliveryLog::lines(file.as_bytes());
        assert!(lines.next().unwrap().is_ok());
        assert_eq!(lines.next().unwrap().unwrap_err().line(), Some(3));
        assert_eq!(lines.next().unwrap().unwrap(), delivery("evt_0"));
        assert!(lines.next().is_none());
        assert_eq!(lines.line(), 4);
    }
}

/// Logs from before the field existed.
#[test]
fn an_answer_without_a_claimed_subscription_is_read() {
    let mut refused = delivery("evt_0");
    refused.answer = Some(LoggedAnswer::new(401, "not_authentic"));
    let before = refused.to_line();
    assert!(!before.contains("claimed_subscription"), "{before}");
    assert_eq!(LoggedDelivery::from_line(before).unwrap(), refused);
    refused.answer.as_mut().unwrap().claimed_subscription = Some("wh_1".to_owned());
    let line = refused.to_line();
    says(&line, r#""claimed_subscription":"wh_1""#);
    assert_eq!(LoggedDelivery::from_line(line).unwrap(), refused);
}

#[test]
fn fields_that_are_not_known_yet_are_passed_over() {
    let line = delivery("evt_0")
        .to_line()
        .replacen('{', r#"{"region":{"a":[1]},"#, 1);
    assert_eq!(LoggedDelivery::from_line(line).unwrap(), delivery("evt_0"));
}

#[test]
fn lines_have_any_length_and_a_log_need_not_fit_into_memory() {
    let large = delivery_of(vec![b'x'; 5 << 20]).to_line() + "\n";
    let many = std::iter::repeat_n(&*large, 40);
    // 200 MiB, of which one line is in memory at a time.
    let mut reader: Box<dyn std::io::Read> = Box::new(std::io::empty());
    for text in many {
        reader = Box::new(std::io::Read::chain(reader, text.as_bytes()));
    }
    let lines = DeliveryLog::lines(std::io::BufReader::new(reader));
    let bytes: usize = lines.map(|line| line.unwrap().body.unwrap().len()).sum();
    assert_eq!(bytes, 200 << 20);
}

#[test]
fn what_was_dropped_is_added_up() {
    let line = delivery("evt_0").to_line();
    let file = format!("{{\"dropped\":2}}\n{line}\n{{\"dropped\":40}}\n");
    let log = DeliveryLog::read(file.as_bytes()).unwrap();
    assert_eq!((log.len(), log.dropped(), log.ended_torn()), (1, 42, false));
    assert_eq!(ids(log.iter()), ["evt_0"]);
    let owned: Vec<LoggedDelivery> = log.into_iter().collect();
    assert_eq!(owned.len(), 1);
}

#[test]
fn names_of_headers_are_in_lower_case_however_the_line_has_them() {
    let line = r#"{"received_at":1,"method":"POST","target":"/","headers":[["X-Service-Timestamp","1"],["Content-LENGTH","2"]],"body":"{}"}"#;
    let read = LoggedDelivery::from_line(line).unwrap();
    assert_eq!(read.header("x-service-timestamp").unwrap(), "1");
    assert_eq!(read.age(), Some(0));
    let curl = read.to_curl("http://127.0.0.1/").unwrap();
    assert!(
        !curl.to_ascii_lowercase().contains("content-length"),
        "{curl}"
    );
}
