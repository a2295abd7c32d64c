//! Accepting: one of many copies is new, ids are remembered for their retention, entries are stored
//! byte for byte.

use super::*;

pub(super) async fn of_many_copies_one_is_new(subject: Subject) {
    let mut copies = JoinSet::new();
    for _ in 0..64 {
        let engine = Arc::clone(&subject.engine);
        copies.spawn(async move { engine.accept(entry("evt_1"), LONG).await.unwrap() });
    }
    let answers = copies.join_all().await;
    let new = answers.iter().filter(|&&a| a == Accepted::New).count();
    assert_eq!(new, 1);
    let same = Accepted::Duplicate { same_body: true };
    assert_eq!(answers.iter().filter(|&&a| a == same).count(), 63);
    assert_eq!(subject.list(Selection::default()).await.len(), 1);
}

pub(super) async fn a_duplicate_tells_another_body(subject: Subject) {
    let first = entry("evt_1");
    let mut other = entry("evt_1");
    other.body = Bytes::from_static(b"{}");
    other.digest = body_digest(&other.body);
    assert_eq!(subject.accept(&first).await, Accepted::New);
    let asked = async |at: &str| {
        let answers = (subject.accept(&first).await, subject.accept(&other).await);
        let expected = (
            Accepted::Duplicate { same_body: true },
            Accepted::Duplicate { same_body: false },
        );
        assert_eq!(answers, expected, "{at}");
    };
    asked("queued").await;
    let job = subject.one().await;
    asked("running").await;
    assert_eq!(job.entry.body, first.body, "the first body is kept");
    assert_eq!(subject.settle(&job, End::Done).await, Ownership::Held);
    asked("done, without its body").await;
}

pub(super) async fn an_id_is_known_while_its_entry_is_not_handled(subject: Subject) {
    let retain = subject.units(1);
    let accept = async || {
        let accepted = subject.engine.accept(entry("evt_1"), retain).await;
        accepted.unwrap()
    };
    let known = Accepted::Duplicate { same_body: true };
    assert_eq!(accept().await, Accepted::New);
    // Engines delete entries after their retention when workers lease.
    subject.pass(3).await;
    subject.lease(request(0)).await;
    assert_eq!(accept().await, known, "queued");
    let job = subject.one().await;
    subject.pass(3).await;
    subject.lease(request(1)).await;
    assert_eq!(accept().await, known, "running");
    assert_eq!(subject.settle(&job, dead()).await, Ownership::Held);
    subject.pass(3).await;
    subject.lease(request(1)).await;
    assert_eq!(accept().await, known, "dead");
    assert_eq!(subject.state("evt_1").await, EntryState::Dead);
}

pub(super) async fn a_handled_entry_is_known_for_its_retention(subject: Subject) {
    let retain = subject.units(200);
    let accepted = subject.engine.accept(entry("evt_1"), retain).await;
    assert_eq!(accepted.unwrap(), Accepted::New);
    let job = subject.one().await;
    assert_eq!(subject.settle(&job, End::Done).await, Ownership::Held);
    for _ in 0..4 {
        subject.pass(1).await;
        assert!(subject.lease(request(1)).await.jobs.is_empty());
        let again = subject.accept(&entry("evt_1")).await;
        assert_eq!(again, Accepted::Duplicate { same_body: true });
    }
    let listed = subject.listed("evt_1").await;
    let until = listed.until.unwrap();
    let kept = Duration::from_millis(until - listed.accepted_at);
    // A duplicate with a longer retention has not lengthened it.
    assert!(
        kept.abs_diff(retain) < subject.units(2),
        "kept for {kept:?}"
    );
}

pub(super) async fn the_retention_ends(subject: Subject) {
    let retain = subject.units(2);
    for name in ["evt_1", "evt_2"] {
        let accepted = subject.engine.accept(entry(name), retain).await;
        assert_eq!(accepted.unwrap(), Accepted::New);
        let job = subject.one().await;
        assert_eq!(subject.settle(&job, End::Done).await, Ownership::Held);
    }
    // The engine deletes at a time of its own choice, but while workers lease. The pause lets a
    // thread of the engine do so.
    for _ in 0..200 {
        subject.pass(1).await;
        subject.lease(request(1)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
        if subject.list(Selection::default()).await.is_empty() {
            assert_eq!(subject.accept(&entry("evt_1")).await, Accepted::New);
            return;
        }
    }
    panic!("ids are never forgotten");
}

pub(super) async fn entries_come_back_as_they_were(subject: Subject) {
    let texts = "ünïcode ✓ 𝄞 \u{202e}rtl\u{202c} e\u{301} \u{feff}'\"\\%_ ;--";
    let all_bytes: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let mut entries = vec![entry("evt_empty"), entry("evt_large"), entry("evt_texts")];
    entries[0].body = Bytes::new();
    entries[0].received_at = UnixSeconds::new(i64::MIN);
    entries[0].digest = u64::MAX;
    entries[1].body = Bytes::from(all_bytes);
    entries[1].received_at = UnixSeconds::new(i64::MAX);
    entries[1].digest = 1 << 63;
    entries[1].row = Some(EventKey::new("row", "1"));
    entries[2].event_id = texts.to_owned();
    entries[2].event_type = texts.to_owned();
    entries[2].scope = texts.to_owned();
    entries[2].key_name = texts.to_owned();
    entries[2].subscription_id = Some(texts.to_owned());
    entries[2].pinned_workspace = Some(String::new());
    entries[2].traceparent = Some(texts.to_owned());
    for entry in &entries {
        assert_eq!(subject.accept(entry).await, Accepted::New);
        let again = subject.accept(entry).await;
        assert_eq!(again, Accepted::Duplicate { same_body: true });
    }
    let jobs = subject.lease(request(9)).await.jobs;
    assert_eq!(jobs.len(), entries.len());
    for (job, entry) in jobs.iter().zip(&entries) {
        same(&job.entry, entry);
        let (listed, shown) = subject.engine.show(job.id).await.unwrap().unwrap();
        same(&shown, entry);
        assert_eq!(listed.body_bytes, entry.body.len() as u64);
        assert_eq!(listed.scope, entry.scope);
        assert_eq!(listed.event_id.as_str(), entry.event_id);
        assert_eq!(listed.event_type.as_str(), entry.event_type);
    }
}

fn same(left: &Entry, right: &Entry) {
    // Not `assert_eq!`, which would print a body of a megabyte.
    assert!(left.body == right.body, "another body");
    let texts = |entry: &Entry| {
        let Entry {
            event_id,
            event_type,
            timestamp,
            scope,
            key_name,
            ..
        } = entry.clone();
        let entry = entry.clone();
        (
            [event_id, event_type, timestamp, scope, key_name],
            [
                entry.subscription_id,
                entry.pinned_workspace,
                entry.traceparent,
            ],
        )
    };
    assert_eq!(texts(left), texts(right));
    let rest = |entry: &Entry| (entry.key, entry.row, entry.digest, entry.received_at);
    assert_eq!(rest(left), rest(right));
}

/// A trace is kept only for the workers: an id that is remembered for two days needs none.
pub(super) async fn a_trace_is_forgotten_with_its_body(subject: Subject) {
    let mut traced = entry("evt_1");
    traced.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    subject.accept(&traced).await;
    let job = subject.one().await;
    let error = "made up".to_owned();
    let after = Duration::ZERO;
    assert_eq!(
        subject.settle(&job, End::Retry { after, error }).await,
        Ownership::Held
    );
    let job = subject.one().await;
    assert_eq!(job.entry.traceparent, traced.traceparent);
    assert_eq!(subject.settle(&job, End::Done).await, Ownership::Held);
    let (_, shown) = subject.engine.show(job.id).await.unwrap().unwrap();
    assert_eq!((shown.traceparent, shown.body), (None, Bytes::new()));
}

pub(super) async fn the_key_alone_names_an_event(subject: Subject) {
    let mut other = entry("evt_1");
    other.key = EventKey::new("another scope", "evt_1");
    other.scope = "another scope".to_owned();
    assert_eq!(subject.accept(&entry("evt_1")).await, Accepted::New);
    assert_eq!(subject.accept(&other).await, Accepted::New);
    assert_eq!(subject.list(of("evt_1")).await.len(), 2);
}

pub(super) async fn a_worker_that_waits_is_woken(subject: Subject) {
    const SOON: Duration = Duration::from_secs(60);
    let mut heard = listen(subject.engine.changed());
    subject.accept(&entry("evt_1")).await;
    assert!(tokio::time::timeout(SOON, &mut heard).await.is_ok());

    let job = subject.one().await;
    // Earlier notifications arrive before this wait ends.
    tokio::time::sleep(Duration::from_millis(200)).await;
    heard = listen(subject.engine.changed());
    assert_eq!(subject.settle(&job, End::Return).await, Ownership::Held);
    assert!(tokio::time::timeout(SOON, &mut heard).await.is_ok());

    let job = subject.one().await;
    assert_eq!(subject.settle(&job, dead()).await, Ownership::Held);
    tokio::time::sleep(Duration::from_millis(200)).await;
    heard = listen(subject.engine.changed());
    assert_eq!(subject.due_again(of("evt_1")).await, 1);
    assert!(tokio::time::timeout(SOON, heard).await.is_ok());

    let job = subject.one().await;
    assert_eq!(subject.settle(&job, retry(LONG)).await, Ownership::Held);
    tokio::time::sleep(Duration::from_millis(200)).await;
    heard = listen(subject.engine.changed());
    let forgotten = Change::Retry { forgets_age: true };
    assert_eq!(subject.operate(of("evt_1"), forgotten).await, 1);
    assert!(tokio::time::timeout(SOON, heard).await.is_ok());
}
