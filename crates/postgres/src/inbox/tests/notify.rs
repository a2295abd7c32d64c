//! Which processes a notification wakes.

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// Waits until this number of processes listen.
async fn until_listening(client: &Client, processes: i64) {
    let count = "SELECT count(*) FROM pg_stat_activity WHERE query ILIKE 'listen %'";
    for _ in 0..2_000 {
        if client.query_one(count, &[]).await.unwrap().get::<_, i64>(0) == processes {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{processes} do not listen");
}

/// Waits until one of these workers is woken, and removes it.
async fn until_one_is_woken(listening: &mut Vec<Listening<'_>>) {
    let any = std::future::poll_fn(|context| {
        let place = listening
            .iter_mut()
            .position(|one| std::pin::Pin::new(one).poll(context).is_ready());
        place.map_or(std::task::Poll::Pending, std::task::Poll::Ready)
    });
    let place = tokio::time::timeout(SOON, any)
        .await
        .expect("none is woken");
    drop(listening.remove(place));
}

/// Each table is a process, with one worker that waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_notification_wakes_as_many_processes_as_there_are_entries() {
    const PROCESSES: usize = 12;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "wake").await;
    let client = connect(&config).await;
    let table = || Table::new(Postgres::new(config.clone(), NoTls), "default");
    let tables: Vec<_> = (0..PROCESSES).map(|_| table()).collect();
    for table in &tables {
        table.notifier.listen();
    }
    until_listening(&client, 12).await;
    let other = table();
    // They wake all workers once they listen.
    tokio::time::sleep(Duration::from_millis(200)).await;
    for entries in [1, 3, 40] {
        let mut listening: Vec<_> = tables
            .iter()
            .map(|table| table.changed().listen())
            .collect();
        listening.iter_mut().for_each(Listening::is_idle_now);
        other.notifier.notify(entries);
        let expected = entries.min(PROCESSES);
        let mut woken = 0;
        while woken < expected {
            until_one_is_woken(&mut listening).await;
            woken += 1;
        }
        // No further one is woken.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let is_woken =
            |one: &mut Listening<'_>| std::pin::Pin::new(one).poll(&mut context).is_ready();
        assert!(!listening.iter_mut().any(is_woken), "more than {entries}");
    }

    // All but one are busy: whichever is named, that one hears of it.
    let idle = &tables[PROCESSES / 2];
    for _ in 0..5 {
        let mut listening = idle.changed().listen();
        listening.is_idle_now();
        other.notifier.notify(1);
        tokio::time::timeout(SOON, &mut listening)
            .await
            .expect("it is not woken");
    }
    // An idle worker of the process that accepts is enough.
    let (mut own, mut listening) = (other.changed().listen(), idle.changed().listen());
    own.is_idle_now();
    listening.is_idle_now();
    other.notifier.notify(1);
    own.await;
    let others = tokio::time::timeout(Duration::from_millis(300), &mut listening).await;
    assert!(others.is_err(), "a second worker is woken");
}

/// A process is told of two entries, and its worker has room for one. On one thread: the worker begins when both are told.
#[tokio::test]
async fn an_entry_for_which_a_process_has_no_room_is_told_to_one_other() {
    const OTHERS: usize = 6;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "room").await;
    let client = connect(&config).await;
    let table = || Arc::new(Table::new(Postgres::new(config.clone(), NoTls), "default"));
    let others: Vec<_> = (0..OTHERS).map(|_| table()).collect();
    for other in &others {
        other.notifier.listen();
    }
    let own = table();
    let inbox = Inbox::on(Arc::clone(&own) as Arc<dyn Engine>);
    let workers = hookgate_inbox::Workers::new(&inbox).concurrency(1);
    let begun = Arc::new(tokio::sync::Semaphore::new(0));
    let begins = Arc::clone(&begun);
    let _running = workers
        .poll_interval(Duration::from_secs(600))
        .start_handler(move |_: hookgate::Delivery| {
            begins.add_permits(1);
            tokio::time::sleep(Duration::from_secs(600))
        })
        .unwrap();
    until_listening(&client, 7).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    while own.changed().idle() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut listening: Vec<_> = others.iter().map(|one| one.changed().listen()).collect();
    listening.iter_mut().for_each(Listening::is_idle_now);
    fill(&client, 2, 1).await;
    client
        .batch_execute("UPDATE hookgate_inbox SET event_type = 'row.deleted', body = convert_to(
           '{\"id\":\"' || event_id || '\",\"type\":\"row.deleted\",\"createdAt\":\"2026-11-21T09:30:00Z\",\"data\":{}}', 'UTF8')")
        .await
        .unwrap();
    own.notifier.notify(1);
    own.notifier.notify(1);
    tokio::time::timeout(SOON, begun.acquire())
        .await
        .expect("its worker is not woken")
        .unwrap()
        .forget();
    until_one_is_woken(&mut listening).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let is_woken = |one: &mut Listening<'_>| std::pin::Pin::new(one).poll(&mut context).is_ready();
    assert!(!listening.iter_mut().any(is_woken), "more than one");
}
