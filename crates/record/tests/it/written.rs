//! The recorder: bounded, rotating, closed to others, and harmless whatever the disk does.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hookgate::{Delivery, MemoryStore, Receiver, Secret};
use hookgate_record::{LoggedDelivery, Recorder, Redaction};
use hookgate_testing::Signer;
use hookgate_testing::log::{DeliveryLog, LoggedDeliveryExt};
use http::StatusCode;

use crate::harness::SECRET;
use crate::{Folder, delivery, delivery_of, ids};

const PATIENCE: Duration = Duration::from_secs(60);

/// The names of the folder's files.
fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn numbered(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|number| format!("evt_{number}")).collect()
}

/// Records this one.
fn record(recorder: &Recorder, number: usize) {
    recorder.record(delivery(&format!("evt_{number}")));
}

/// Records from this many threads, each as many of the numbers.
fn record_from(recorders: &[&Recorder], each: usize) {
    std::thread::scope(|scope| {
        for (at, recorder) in recorders.iter().enumerate() {
            let numbers = at * each..(at + 1) * each;
            scope.spawn(move || numbers.for_each(|number| record(recorder, number)));
        }
    });
}

/// The ids of a log, by their numbers.
fn sorted(log: &DeliveryLog) -> Vec<String> {
    let mut all = ids(log);
    all.sort_by_key(|id| id[4..].parse::<usize>().unwrap());
    all
}

#[test]
fn what_is_recorded_is_read_again_and_a_short_program_loses_nothing() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    for round in 0..3 {
        // Opened again, it goes on at the end of the file.
        let recorder = Recorder::to(&path).open().unwrap();
        let clone = recorder.clone();
        for number in 0..200 {
            record(&recorder, round * 200 + number);
        }
        drop(recorder);
        assert_eq!(clone.dropped(), 0);
        drop(clone);
    }
    let log = DeliveryLog::open(&path).unwrap();
    assert_eq!(ids(&log), numbered(0..600));
    assert_eq!((log.dropped(), log.torn(), log.ended_torn()), (0, 0, false));
}

/// A pipe without a reader holds 64 KiB, and then blocks the writer.
#[cfg(unix)]
#[test]
fn a_writer_that_hangs_delays_no_delivery_and_dropped_lines_are_counted() {
    let folder = Folder::new();
    let path = folder.path("pipe");
    let made = Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut both = fs::OpenOptions::new();
    let mut reading = both.read(true).write(true).open(&path).unwrap();
    let recorder = Recorder::to(&path).queue(50, 1 << 20).open().unwrap();
    // More than the pipe holds, so that the writer hangs; it has that one in its hand.
    recorder.record(delivery_of(vec![b'x'; 200_000]));
    let began = std::time::Instant::now();
    for number in 0..100_000 {
        record(&recorder, number);
    }
    // One that waited a millisecond would need longer than this for so many; a lock that is held
    // briefly does not.
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    assert_eq!((recorder.dropped(), recorder.written()), (100_000 - 49, 0));
    assert!(!recorder.flush(Duration::from_millis(50)));
    // Too large for the queue as a whole.
    recorder.record(delivery_of(vec![b'x'; 1 << 20]));
    assert_eq!(recorder.dropped(), 100_000 - 48);

    let done = recorder.clone();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let mut chunk = vec![0; 1 << 16];
        while !String::from_utf8_lossy(&text).contains("\"dropped\"") || !text.ends_with(b"\n") {
            let read = reading.read(&mut chunk).unwrap();
            text.extend_from_slice(&chunk[..read]);
        }
        text
    });
    assert!(done.flush(PATIENCE));
    let text = reader.join().unwrap();
    let log = DeliveryLog::read(&*text).unwrap();
    assert_eq!((log.len(), log.dropped()), (50, recorder.dropped()));
    assert_eq!(ids(&log.deliveries()[1..]), numbered(0..49));
    assert_eq!((recorder.written(), recorder.failures()), (50, 0));
}

#[test]
fn memory_is_bounded_by_bytes_as_well() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let recorder = Recorder::to(&path).queue(1_000, 100_000).open().unwrap();
    recorder.record(delivery_of(vec![b'x'; 100_001]));
    assert!(recorder.flush(PATIENCE));
    assert_eq!(recorder.dropped(), 1);
    record(&recorder, 1);
    drop(recorder);
    let log = DeliveryLog::open(path).unwrap();
    assert_eq!((ids(&log), log.dropped()), (numbered(1..2), 1));
}

#[test]
fn rotation_keeps_so_many_files_and_no_entry_is_torn_or_lost() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let line = delivery("evt_100").to_line().len() as u64 + 1;
    // A file of another program stays.
    fs::write(folder.path("log.jsonl.20251121"), "somebody's").unwrap();
    let recorder = Recorder::to(&path).max_bytes(4 * line).keep(3);
    let recorder = recorder.open().unwrap();
    for number in 100..113 {
        record(&recorder, number);
        assert!(recorder.flush(PATIENCE));
    }
    let all = "log.jsonl log.jsonl.1 log.jsonl.2 log.jsonl.20251121 log.jsonl.3";
    assert_eq!(names(&folder).join(" "), all);
    for (name, range) in [
        ("log.jsonl.3", 100..104),
        ("log.jsonl.2", 104..108),
        ("log.jsonl.1", 108..112),
        ("log.jsonl", 112..113),
    ] {
        let part = DeliveryLog::open(folder.path(name)).unwrap();
        assert_eq!(ids(&part), numbered(range), "{name}");
    }
    let whole = DeliveryLog::open_rotated(&path).unwrap();
    assert_eq!(ids(&whole), numbered(100..113));
    let lines = DeliveryLog::lines_of_rotated(&path).unwrap();
    assert_eq!(lines.filter_map(Result::ok).count(), 13);
    // The oldest goes, and one larger than a file may be has a file of its own.
    let large = "x".repeat(5 * line as usize);
    recorder.record(delivery_of(format!(r#"{{"id":"evt_113","x":"{large}"}}"#)));
    record(&recorder, 114);
    drop(recorder);
    assert_eq!(names(&folder).join(" "), all);
    let whole = DeliveryLog::open_rotated(&path).unwrap();
    assert_eq!(ids(&whole), numbered(108..115));
    // Without older ones.
    let recorder = Recorder::to(&path).max_bytes(1).keep(0).open().unwrap();
    record(&recorder, 115);
    drop(recorder);
    assert_eq!(ids(&DeliveryLog::open(&path).unwrap()), numbered(115..116));
}

#[test]
fn a_flood_loses_nothing_to_rotation() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let recorder = Recorder::to(&path).max_bytes(20_000).keep(900);
    let recorder = recorder.queue(1 << 20, 1 << 30).open().unwrap();
    record_from(&[&recorder; 4], 2_000);
    assert!(recorder.flush(PATIENCE));
    assert_eq!((recorder.written(), recorder.dropped()), (8_000, 0));
    let log = DeliveryLog::open_rotated(&path).unwrap();
    assert_eq!(sorted(&log), numbered(0..8_000));
    assert!(names(&folder).len() > 50);
}

#[cfg(unix)]
#[test]
fn only_its_owner_may_read_it() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let mode = |name: &str| {
        let file = fs::metadata(folder.path(name)).unwrap();
        file.permissions().mode() & 0o777
    };
    // Files that exist already, and that others may read.
    for name in ["log.jsonl", "log.jsonl.1"] {
        fs::write(folder.path(name), "").unwrap();
        fs::set_permissions(folder.path(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let recorder = Recorder::to(&path).max_bytes(1).keep(3).open().unwrap();
    assert_eq!((mode("log.jsonl"), mode("log.jsonl.1")), (0o600, 0o600));
    for number in 0..3 {
        record(&recorder, number);
    }
    assert!(recorder.flush(PATIENCE));
    for name in names(&folder) {
        assert_eq!(mode(&name), 0o600, "{name}");
    }
    assert_eq!(names(&folder).len(), 4);
}

#[test]
fn a_missing_directory_is_reported_and_writing_continues_when_it_is_back() {
    let folder = Folder::new();
    fs::create_dir(folder.path("logs")).unwrap();
    let path = folder.path("logs/log.jsonl");
    let told = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&told);
    let recorder = Recorder::to(&path)
        .queue(10, 1 << 20)
        .on_error(move |error| {
            let told = error.to_string();
            assert!(told.ends_with("logs/log.jsonl can't be written"), "{told}");
            counted.fetch_add(1, Ordering::SeqCst);
            panic!("in the hook");
        })
        .open()
        .unwrap();
    record(&recorder, 0);
    assert!(recorder.flush(PATIENCE));
    assert!(recorder.last_error().is_none());
    fs::remove_dir_all(folder.path("logs")).unwrap();
    for number in 1..15 {
        record(&recorder, number);
    }
    // It is tried again, and again.
    while recorder.failures() < 2 {
        assert!(!recorder.flush(Duration::from_millis(50)));
    }
    let error = recorder.last_error().expect("it can't be written");
    assert_eq!(error.path(), path);
    // Once, and not at each attempt.
    assert_eq!(told.load(Ordering::SeqCst), 1);
    assert_eq!((recorder.written(), recorder.dropped()), (1, 4));
    fs::create_dir(folder.path("logs")).unwrap();
    assert!(recorder.flush(PATIENCE));
    assert!(recorder.last_error().is_none());
    drop(recorder);
    let log = DeliveryLog::open(&path).unwrap();
    assert_eq!((ids(&log), log.dropped()), (numbered(1..11), 4));

    let missing = Recorder::to(folder.path("nowhere/log.jsonl")).open();
    let shown = format!("{:?}", missing.unwrap_err());
    assert!(shown.starts_with("RecordError: the log /"), "{shown}");
    let said = "nowhere/log.jsonl can't be written: No such file";
    assert!(shown.contains(said) && !shown.contains('\n'), "{shown}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_and_the_recorder_can_be_dropped() {
    // The best of some, for a busy machine: one that waited for its file took 5 s.
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let recorder = Recorder::to("/dev/full").open().unwrap();
        recorder.record(delivery("evt_1"));
        assert!(!recorder.flush(Duration::from_millis(100)));
        let began = std::time::Instant::now();
        while recorder.last_error().is_none() {
            assert!(began.elapsed() < PATIENCE, "no room");
            std::thread::sleep(Duration::from_millis(5));
        }
        let error = recorder.last_error().unwrap();
        let source = std::error::Error::source(&*error).unwrap();
        assert!(source.to_string().contains("No space left"), "{source}");
        let began = std::time::Instant::now();
        drop(recorder);
        fastest = fastest.min(began.elapsed());
        if fastest < Duration::from_secs(3) {
            break;
        }
    }
    assert!(fastest < Duration::from_secs(3), "{fastest:?}");
}

#[cfg(unix)]
#[test]
fn a_file_that_was_moved_or_removed_is_opened_again() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let recorder = Recorder::to(&path).open().unwrap();
    let record = |number: usize| {
        record(&recorder, number);
        assert!(recorder.flush(PATIENCE));
    };
    record(0);
    fs::rename(&path, folder.path("by-hand")).unwrap();
    record(1);
    fs::remove_file(&path).unwrap();
    record(2);
    // Another one is in its place already.
    fs::rename(&path, folder.path("by-hand.2")).unwrap();
    fs::write(&path, "").unwrap();
    record(3);
    for (name, range) in [("by-hand", 0..1), ("log.jsonl", 3..4)] {
        let log = DeliveryLog::open(folder.path(name)).unwrap();
        assert_eq!(ids(&log), numbered(range), "{name}");
    }
}

#[test]
fn a_line_that_was_torn_by_a_crash_is_closed_off() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let line = delivery("evt_0").to_line();
    for cut in [1, line.len() / 2, line.len()] {
        fs::write(&path, format!("{line}\n{}", &line[..cut])).unwrap();
        let torn = DeliveryLog::open(&path).unwrap();
        assert_eq!(torn.ended_torn(), cut < line.len(), "{cut}");
        let recorder = Recorder::to(&path).open().unwrap();
        record(&recorder, 1);
        record(&recorder, 2);
        drop(recorder);
        let log = DeliveryLog::open(&path).unwrap();
        let whole = usize::from(cut == line.len());
        let expected = (3 + whole, 1 - whole as u64);
        assert_eq!((log.len(), log.torn()), expected, "{cut}");
        assert_eq!(ids(&log.deliveries()[1 + whole..]), numbered(1..3));
        assert!(!log.ended_torn());
    }
}

/// The child of the test below: it writes until it is killed.
#[test]
#[ignore = "a child of another test"]
fn writes_until_it_is_killed() {
    let Some(path) = std::env::var_os("HOOKGATE_TEST_LOG") else {
        return;
    };
    let recorder = Recorder::to(path).max_bytes(200_000).keep(900);
    let recorder = recorder.open().unwrap();
    for number in 0_usize.. {
        let filling = "x".repeat(number % 3_000);
        let body = format!(r#"{{"id":"evt_{number}","x":"{filling}"}}"#);
        recorder.record(delivery_of(body));
        while recorder.written() + 100 < number as u64 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(unix)]
#[test]
fn a_process_that_is_killed_leaves_whole_lines() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let mut last = 0;
    for _ in 0..4 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "written::writes_until_it_is_killed", "--ignored"])
            .env("HOOKGATE_TEST_LOG", &path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let before = last;
        while last < before + 300_000 {
            std::thread::sleep(Duration::from_millis(5));
            let size = |name: &String| fs::metadata(folder.path(name)).map_or(0, |file| file.len());
            last = names(&folder).iter().map(size).sum();
        }
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        // Each file but for the last line, and each delivery but for those that were not written
        // yet, in its order.
        let log = DeliveryLog::open_rotated(&path).unwrap();
        let mut expected = 0;
        for id in ids(&log) {
            let number: usize = id[4..].parse().unwrap();
            let is_next = number == expected || number == 0;
            assert!(is_next, "{id} in place of {expected}");
            expected = number + 1;
        }
        assert!(expected > 10);
    }
}

#[test]
fn nothing_that_was_taken_out_is_in_the_file() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let redaction = Redaction::people().key("Iban").header("X-Customer");
    let recorder = Recorder::to(&path).redact(redaction).open().unwrap();
    let body = r#"{"id":"evt_0","data":{"properties":{"IBAN":"DE02120300000000202051"},"createdBy":{"id":"usr_1","name":"Ada","email":"ada@example.com"}}}"#;
    let mut personal = delivery_of(body);
    let customer = Bytes::from_static(b"cust_made_up");
    personal.headers.push(("x-customer".into(), customer));
    recorder.record(personal);
    record(&recorder, 1);
    recorder.record(delivery_of("Ada, in no JSON"));
    drop(recorder);
    let text = fs::read_to_string(&path).unwrap();
    for taken in ["DE02", "Ada", "ada@", "cust_made_up"] {
        assert!(!text.contains(taken), "{taken} in {text}");
    }
    let log = DeliveryLog::open(&path).unwrap();
    let [personal, plain, other] = log.deliveries() else {
        panic!("{log:?}")
    };
    assert!(personal.unverifiable && !plain.unverifiable && other.unverifiable);
    assert_eq!(plain, &delivery("evt_1"));
    assert_eq!(other.body, None);
    let expected = body
        .replace("DE02120300000000202051", "[redacted]")
        .replace("Ada", "[redacted]")
        .replace("ada@example.com", "[redacted]");
    assert_eq!(personal.body.as_deref(), Some(expected.as_bytes()));
    // Signed again, the redacted delivery is as valid as any.
    let signer = Signer::new(Secret::new(SECRET).unwrap());
    assert!(!personal.is_verifiable());
    assert!(personal.resigned(&signer).unwrap().is_verifiable());
    assert_eq!(other.resigned(&signer), None);
}

#[tokio::test]
async fn credentials_and_secrets_never_reach_the_file() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let recorder = Recorder::to(&path).open().unwrap();
    let secret = Secret::new(SECRET).unwrap();
    let receiver = Receiver::builder()
        .secret(secret.clone())
        .store(MemoryStore::default())
        .observer(recorder.clone())
        .build()
        .unwrap();
    let body = r#"{"id":"evt_1","type":"page.created"}"#;
    let mut request = Signer::new(secret).request("/webhooks?token=made_up_1&x=1", body);
    for (name, value) in [
        ("authorization", "Bearer made_up_2"),
        ("proxy-authorization", "Basic made_up_3"),
        ("cookie", "id=made_up_4"),
        ("x-api-key", "made_up_5"),
        ("x-plain", "made_up_6"),
    ] {
        let mut value = http::HeaderValue::from_static(value);
        // As a proxy in the same process may say.
        value.set_sensitive(name == "x-plain");
        request.headers_mut().insert(name, value);
    }
    let handler = async |_: Delivery| StatusCode::NO_CONTENT;
    let request = request.map(http_body_util::Full::new);
    let answer = receiver.handle(request, handler).await;
    assert_eq!(answer.status(), 204);
    assert!(recorder.flush(PATIENCE));
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("made_up"), "{text}");
    let log = DeliveryLog::open(&path).unwrap();
    let delivery = &log.deliveries()[0];
    assert_eq!(delivery.target, "/webhooks?token=[redacted]&x=1");
    assert_eq!(delivery.header("cookie").unwrap(), "[redacted]");
    assert!(delivery.is_verifiable());
    // `Debug` of the recorder and of the redacted delivery shows none of the event's data either.
    assert!(!format!("{recorder:?} {delivery:?}").contains("evt_1"));
}

#[test]
fn two_recorders_on_one_file_do_not_mix_their_lines() {
    let folder = Folder::new();
    let path = folder.path("log.jsonl");
    let recorders = [(); 2].map(|()| Recorder::to(&path).open().unwrap());
    record_from(&recorders.each_ref(), 500);
    drop(recorders);
    let log = DeliveryLog::open(&path).unwrap();
    assert_eq!(sorted(&log), numbered(0..1_000));
}

#[test]
fn a_torn_write_is_marked_and_the_line_written_again() {
    // The file that a recorder leaves after the disk was full for a while: half a line, half a
    // mark, the mark, and the line.
    let line = delivery("evt_0").to_line();
    let half = &line[..30];
    let file = format!("{line}\n{half}\n{{\"to\n{{\"torn\":true}}\n{line}\n");
    let log = DeliveryLog::read(file.as_bytes()).unwrap();
    assert_eq!((log.len(), log.torn()), (2, 1));
    let _: LoggedDelivery = log.into_iter().next().unwrap();
}
