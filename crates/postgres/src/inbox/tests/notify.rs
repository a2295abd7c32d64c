//! Which processes a notification wakes.

use super::*;

/// Each table is a process, with one worker that waits.
// fault Q27: each new entry wakes the idle workers of all processes
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_notification_wakes_one_process_and_none_of_another_inbox() {
    const PROCESSES: usize = 12;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "wake").await;
    let table = |name| Table::new(patient(config.clone()), name);
    let tables: Vec<_> = (0..PROCESSES).map(|_| table("default")).collect();
    let foreign = table("foreign");
    for table in tables.iter().chain([&foreign]) {
        table.notifier.listen();
    }
    // Each wakes a worker of its own once it listens.
    for table in tables.iter().chain([&foreign]) {
        let listens = tokio::time::timeout(PATIENCE, table.changed().notified());
        listens.await.expect("one does not listen");
    }
    let other = table("default");
    for _ in 0..5 {
        let mut waits: Vec<_> = tables
            .iter()
            .chain([&other, &foreign])
            .map(|table| table.changed())
            .map(|changed| {
                // A signal from before is used up.
                while Box::pin(changed.notified()).as_mut().enable() {}
                let mut waits = Box::pin(changed.notified());
                assert!(!waits.as_mut().enable());
                waits
            })
            .collect();
        other.notifier.notify();
        let mut woken = Vec::new();
        let began = std::time::Instant::now();
        let mut until = None;
        while until.is_none_or(|until| std::time::Instant::now() < until) {
            assert!(began.elapsed() < PATIENCE, "{woken:?} are woken");
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            for (place, wait) in waits.iter_mut().enumerate() {
                if !woken.contains(&place) && wait.as_mut().poll(&mut context).is_ready() {
                    woken.push(place);
                }
            }
            if woken.len() == 2 {
                // No further one is woken.
                until.get_or_insert(std::time::Instant::now() + Duration::from_millis(300));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        woken.sort_unstable();
        assert!(
            matches!(woken[..], [0..PROCESSES, PROCESSES]),
            "one beside its own: {woken:?}"
        );
    }
}
