//! `hookgate inbox erase` on delivery logs, as a receiver leaves them and while one writes them; on inboxes it is tested in
//! `tests/servers/erase.rs`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use hookgate::clock::UnixSeconds;
use hookgate_record::{LoggedAnswer, LoggedDelivery, Recorder};
use hookgate_testing::log::DeliveryLog;
use serde_json::Value;

use crate::cli::Ran;

/// A folder with a log, gone with its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("hookgate-it-erase-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn log(&self) -> PathBuf {
        self.0.join("deliveries.jsonl")
    }

    /// Writes the log, or a rotated file of it.
    fn write(&self, ending: &str, lines: &[String]) -> PathBuf {
        let path = self.0.join(format!("deliveries.jsonl{ending}"));
        fs::write(&path, lines.concat()).unwrap();
        mode(&path, 0o600);
        path
    }

    fn erase(&self, arguments: &[&str]) -> Ran {
        let log = self.log();
        let all = ["inbox", "erase", "--log", log.to_str().unwrap()];
        Ran::of(&[&all, arguments].concat())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn mode(path: &Path, mode: u32) {
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    #[cfg(not(unix))]
    let _ = (path, mode);
}

fn logged(id: &str, data: &str) -> LoggedDelivery {
    let body = format!(r#"{{"id":"{id}","type":"row.updated","data":{data}}}"#);
    LoggedDelivery::new(UnixSeconds::new(1_763_690_000), [("x-a", "1")], body)
}

fn line(id: &str, data: &str) -> String {
    logged(id, data).to_line() + "\n"
}

fn of(person: &str) -> String {
    format!(r#"{{"rowId":"row_{person}","updatedBy":{{"id":"{person}","name":"Ada"}}}}"#)
}

/// The values that it prints, and its exit code.
fn json(ran: &Ran) -> (Option<i32>, Vec<Value>) {
    let values = ran.stdout.lines();
    let values = values.map(|line| serde_json::from_str(line).unwrap());
    (ran.code, values.collect())
}

#[test]
fn the_lines_of_a_person_go_and_all_others_stay_byte_for_byte() {
    let folder = Folder::new("lines");
    let [theirs, other] = ["usr_1", "usr_12"].map(|person| line("evt_1", &of(person)));
    let mut said = logged("evt_2", "{}");
    let mut answer = LoggedAnswer::new(500, "handler_status");
    answer.reason = Some("no account for usr_1".into());
    said.answer = Some(answer);
    let said = said.to_line() + "\n";
    let torn = theirs[..theirs.len() - 9].to_owned() + "\n";
    let marks = "{\"torn\":true}\n{\"dropped\":2}\n".to_owned();
    let foreign = "not ours at all\n".to_owned();
    let unended = other.trim_end().to_owned();
    let oldest = folder.write(".2", &[other.clone(), theirs.clone()]);
    let untouched = folder.write(".1", &[other.clone(), foreign.clone()]);
    let log = folder.write(
        "",
        &[
            other.clone(),
            theirs,
            torn,
            marks.clone(),
            said,
            foreign.clone(),
            unended.clone(),
        ],
    );
    mode(&log, 0o640);
    let before = |path: &Path| fs::read_to_string(path).unwrap();
    let all = [&oldest, &untouched, &log].map(|path| before(path));

    let ran = folder.erase(&["--person", "usr_1", "--json"]);
    let (code, values) = json(&ran);
    assert_eq!((code, &*ran.stderr), (Some(0), ""));
    assert_eq!([&oldest, &untouched, &log].map(|path| before(path)), all);
    let [first, .., said, counts] = &values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(values.len(), 5);
    assert_eq!(
        (&first["line"], &first["eventId"]),
        (&2.into(), &"evt_1".into())
    );
    assert!(
        first["log"]
            .as_str()
            .unwrap()
            .ends_with("deliveries.jsonl.2")
    );
    assert_eq!(
        (&said["line"], &said["eventId"]),
        (&6.into(), &"evt_2".into())
    );
    assert_eq!(counts["dryRun"], true);
    assert_eq!((&counts["lines"], &counts["logs"]), (&4.into(), &1.into()));

    let ran = folder.erase(&["--person", "usr_1"]);
    let last = ran.stdout.lines().last().unwrap();
    let expected = "nothing erased yet, --yes erases 4 lines of 1 log";
    assert_eq!((ran.code, last), (Some(0), expected));
    assert!(
        ran.stdout
            .contains("deliveries.jsonl:2  row.updated  evt_1"),
        "{ran:?}"
    );

    let inode = inode(&untouched);
    let ran = folder.erase(&["--person", "usr_1", "--yes"]);
    let last = ran.stdout.lines().last().unwrap();
    assert_eq!(
        (ran.code, last, &*ran.stderr),
        (Some(0), "4 lines of 1 log erased", "")
    );
    assert_eq!(before(&oldest), other);
    assert_eq!(before(&untouched), all[1]);
    assert_eq!(
        self::inode(&untouched),
        inode,
        "a file without such a line is not written"
    );
    let torn_mark = "\n{\"torn\":true}\n";
    assert_eq!(
        before(&log),
        [&*other, &marks, &foreign, &unended, torn_mark].concat()
    );
    #[cfg(unix)]
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&log).unwrap().permissions()) & 0o777,
        0o640
    );
    assert_eq!(
        fs::read_dir(&folder.0).unwrap().count(),
        3,
        "no other file is left"
    );

    let ran = folder.erase(&["--person", "usr_1", "--yes"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("nothing was found"), "{ran:?}");
}

#[cfg(unix)]
fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> u64 {
    0
}

#[test]
fn the_lines_of_a_row_are_those_of_its_own_events() {
    let folder = Folder::new("row");
    let relation = line(
        "evt_2",
        r#"{"rowId":"row_2","changes":{"Customer":{"after":["row_1"]}}}"#,
    );
    folder.write(
        "",
        &[line("evt_1", r#"{"rowId":"row_1"}"#), relation.clone()],
    );
    let ran = folder.erase(&["--row", "row_1", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(folder.log()).unwrap(), relation);
}

#[test]
fn a_line_that_was_cut_off_goes_where_the_person_stands_behind_escapes() {
    let folder = Folder::new("escapes");
    let cut_off = |data: &str| {
        let mut logged = logged("evt_1", data);
        let body = logged.body.take().unwrap();
        logged.body = Some(body[..body.len() - 2].to_vec().into());
        logged.to_line() + "\n"
    };
    let torn = |data: &str| line("evt_1", data).trim_end_matches("\"}\n").to_owned() + "\n";
    let other = [
        cut_off(r#"{"Note":"Dear\nBob"}"#),
        line("evt_2", r#"{"Note":"Dear\nAdam"}"#),
    ];
    let theirs = [
        cut_off(r#"{"Note":"Dear\nAda"}"#),
        cut_off(r#"{"Note":"\u0041da"}"#),
        torn(r#"{"Note":"Dear\nAda"}"#),
        torn(r#"{"Note":"\u0041d\u0061"}"#),
    ];
    folder.write("", &[&other[..], &theirs].concat());
    let (code, values) = json(&folder.erase(&["--person", "Ada", "--yes", "--json"]));
    assert_eq!(
        (code, &values.last().unwrap()["lines"]),
        (Some(0), &4.into())
    );
    assert_eq!(fs::read_to_string(folder.log()).unwrap(), other.concat());
}

#[test]
fn a_file_that_is_not_a_log_is_refused_before_anything_is_erased() {
    let folder = Folder::new("other-file");
    let theirs = [line("evt_1", &of("usr_1"))];
    for (ending, content) in [
        (".1", &b"\x1f\x8b\x08\0packed\nusr_2\n"[..]),
        ("", b"{\"id\":\"evt_1\"}\n"),
    ] {
        folder.write("", &theirs);
        let file = folder.write(ending, &[]);
        fs::write(&file, content).unwrap();
        let ran = folder.erase(&["--person", "usr_1", "--yes"]);
        assert_eq!((ran.code, &*ran.stdout), (Some(3), ""), "{ran:?}");
        let said = format!(
            "{} has no line of a delivery log",
            fs::canonicalize(&file).unwrap().display()
        );
        assert!(ran.stderr.contains(&said), "{ran:?}");
        assert_eq!(fs::read(&file).unwrap(), content);
        if !ending.is_empty() {
            assert_eq!(fs::read_to_string(folder.log()).unwrap(), theirs.concat());
            fs::remove_file(file).unwrap();
        }
    }
    // An empty file, or one with a recorder's marks alone, is a log: the report counts it as a log.
    for content in [
        "",
        "{\"torn\":true}\n",
        "{\"dropped\":2}\n",
        "{\"received_at\":17",
    ] {
        folder.write("", &[content.into()]);
        let ran = folder.erase(&["--person", "usr_1"]);
        assert_eq!(
            (ran.code, &*ran.stdout, &*ran.stderr),
            (
                Some(1),
                "nothing to erase: no line of a log\n",
                "note: nothing was found with that id\n"
            )
        );
    }
}

#[test]
fn an_e_mail_address_is_found_in_capital_and_small_letters() {
    let folder = Folder::new("address");
    let of = |address: &str| line("evt_1", &format!(r#"{{"Mail":"{address}"}}"#));
    let other = of("xada@example.com");
    let lines = [other.clone(), of("Ada@Example.COM"), of("ada@example.com")];
    folder.write("", &lines);
    let ran = folder.erase(&["--person", "ada@Example.com", "--yes"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(fs::read_to_string(folder.log()).unwrap(), other);
    folder.write("", &[of("USR_1")]);
    let ran = folder.erase(&["--person", "usr_1"]);
    assert_eq!(ran.code, Some(1), "an id counts as it is written: {ran:?}");
}

#[test]
fn the_old_file_stays_where_the_new_one_is_there_already() {
    let folder = Folder::new("leftover");
    let log = folder.write("", &[line("evt_1", &of("usr_1"))]);
    let whole = fs::read_to_string(&log).unwrap();
    let leftover = folder.write(".erase", &["half of a".into()]);
    let ran = folder.erase(&["--person", "usr_1", "--yes"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(
        ran.stderr.contains("deliveries.jsonl.erase exists"),
        "{ran:?}"
    );
    assert_eq!(fs::read_to_string(&log).unwrap(), whole);
    fs::remove_file(leftover).unwrap();
    assert_eq!(folder.erase(&["--person", "usr_1", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(&log).unwrap(), "");
    let nowhere = Ran::of(&[
        "inbox",
        "erase",
        "--row",
        "row_1",
        "--log",
        "/no/such.jsonl",
    ]);
    assert_eq!(nowhere.code, Some(3), "{nowhere:?}");
}

#[test]
fn what_was_erased_before_a_fault_is_counted() {
    let folder = Folder::new("midway");
    let lines = [line("evt_1", &of("usr_1")), line("evt_2", &of("usr_2"))];
    let second = folder.write(".c", &lines[..1]);
    folder.write(".c.erase", &["half of a".into()]);
    let log = ["--log", second.to_str().unwrap()];
    for json_too in [false, true] {
        let first = folder.write("", &lines);
        let as_json: &[_] = if json_too { &["--json"] } else { &[] };
        let ran = folder.erase(&[&log[..], &["--person", "usr_1", "--yes"], as_json].concat());
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert!(
            ran.stderr.contains("deliveries.jsonl.c.erase exists"),
            "{ran:?}"
        );
        let last = ran.stdout.lines().last().unwrap();
        if json_too {
            let counts: Value = serde_json::from_str(last).unwrap();
            assert_eq!((&counts["lines"], &counts["logs"]), (&1.into(), &1.into()));
        } else {
            assert_eq!(last, "1 line of a log erased");
        }
        assert_eq!(fs::read_to_string(&first).unwrap(), lines[1]);
        assert_eq!(fs::read_to_string(&second).unwrap(), lines[0]);
    }
}

/// The recorder of a receiver continues, and rotates its files.
#[cfg(unix)]
#[test]
fn no_line_is_lost_while_a_receiver_writes_the_log() {
    let folder = Folder::new("live");
    let recorder = Recorder::to(folder.log()).max_bytes(200_000).keep(999);
    let recorder = Arc::new(recorder.open().unwrap());
    let ends = Arc::new(AtomicBool::new(false));
    let (writer, has_ended) = (Arc::clone(&recorder), Arc::clone(&ends));
    let live = thread::spawn(move || {
        let mut number = 0;
        while !has_ended.load(Ordering::SeqCst) {
            let person = if number % 3 == 0 { "usr_1" } else { "usr_2" };
            writer.record(logged(&format!("evt_{number}"), &of(person)));
            number += 1;
            thread::sleep(Duration::from_micros(300));
        }
        number
    });
    let mut erased = 0;
    for _ in 0..4 {
        thread::sleep(Duration::from_millis(200));
        let (code, values) = json(&folder.erase(&["--person", "usr_1", "--yes", "--json"]));
        assert_eq!(code, Some(0));
        erased += values.last().unwrap()["lines"].as_u64().unwrap();
    }
    ends.store(true, Ordering::SeqCst);
    let all = live.join().unwrap();
    assert!(recorder.flush(Duration::from_secs(60)));
    assert_eq!((recorder.dropped(), recorder.failures()), (0, 0));
    let last = folder.erase(&["--person", "usr_1", "--yes", "--json"]);
    erased += json(&last).1.last().unwrap()["lines"].as_u64().unwrap();

    let mut ids = Vec::new();
    for logged in DeliveryLog::lines_of_rotated(folder.log()).unwrap() {
        let body: Value = serde_json::from_slice(&logged.unwrap().body.unwrap()).unwrap();
        assert_eq!(body["data"]["updatedBy"]["id"], "usr_2");
        let number = body["id"]
            .as_str()
            .unwrap()
            .trim_start_matches("evt_")
            .to_owned();
        ids.push(number.parse::<u64>().unwrap());
    }
    ids.sort_unstable();
    let expected: Vec<_> = (0..all).filter(|number| number % 3 != 0).collect();
    assert_eq!(ids, expected, "each line of another person is there once");
    assert_eq!(erased, all.div_ceil(3));
}
