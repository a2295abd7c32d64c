//! The work of a statement: its plan, and the pages and rows that it reads.

use super::*;

/// Each lease uses an index, however many entries are done or wait behind others.
#[tokio::test]
async fn a_lease_reads_no_more_than_it_takes() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "plan").await;
    let client = connect(&config).await;
    fill(&client, 30_000, 1).await;
    // Most are done, and most of the rest are due tomorrow.
    for statement in [
        "UPDATE hookgate_inbox SET state = 2 WHERE id % 3 > 0",
        "UPDATE hookgate_inbox SET due_at = now() + interval '1 day' WHERE id % 3 = 0 AND id % 100 > 0",
        "VACUUM ANALYZE hookgate_inbox",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let asked: [&(dyn ToSql + Sync); 7] = [
        &8_i64,
        &Vec::<i64>::new(),
        &10_i32,
        &"default",
        &Some(165_000.0),
        &[0_u8; 16].as_slice(),
        &1.0,
    ];
    for (statement, parameters) in [
        (&lease::LEASE, &asked[..]),
        (&serial::CANDIDATES, &asked[..5]),
    ] {
        let types = &lease::TYPES[..parameters.len()];
        let plan = plan(&client, statement, types, parameters, 400).await;
        assert!(plan.contains("hookgate_inbox_pending"), "{plan}");
    }
}

/// The entries that wait longest are all of one row, in which one runs.
// fault Q25: a lease by row reads the whole backlog of a row that runs, and events of other rows wait for seconds
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_backlog_in_one_row_is_not_read_to_find_the_entries_of_others() {
    const OTHERS: i32 = 40;
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let (client, table, _) = hot_row(&server, "hot", 20_000).await;
    fill(&client, OTHERS + 1, 1).await;
    // One other entry has no row, and the lease of another has ended.
    for statement in [
        "UPDATE hookgate_inbox SET row_key = NULL WHERE event_id = 'evt_1_2'",
        "UPDATE hookgate_inbox SET state = 1, tries = 1, token = 'x' WHERE event_id = 'evt_1_3'",
        "VACUUM ANALYZE hookgate_inbox",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    // The work of one call, of each of its searches.
    let parameters: [&(dyn ToSql + Sync); 6] = [
        &8_i64,
        &Vec::<i64>::new(),
        &10_i32,
        &"default",
        &Some(165_000.0),
        &[0_u8; 0].as_slice(),
    ];
    for (statement, count, index) in [
        (&serial::CANDIDATES, 5, "hookgate_inbox_pending_by_name"),
        (&serial::BY_ROWS, 6, "hookgate_inbox_fresh_by_row"),
    ] {
        let types = &lease::TYPES[..count];
        let plan = plan(&client, statement, types, &parameters[..count], 2_500).await;
        assert!(plan.contains(index), "{plan}");
        reads_few_rows(&plan);
    }

    let mut found = std::collections::BTreeSet::new();
    for _ in 0..OTHERS / 8 + 2 {
        let batch = table.lease(request(8, true)).await.unwrap();
        for job in batch.jobs {
            assert!(found.insert(job.entry.event_id));
        }
    }
    let others: Vec<_> = (2..=OTHERS + 1).map(|row| format!("evt_1_{row}")).collect();
    assert!(
        found
            .iter()
            .eq(std::collections::BTreeSet::from_iter(others).iter()),
        "{found:?}"
    );
    // All rows run: there is no hurry.
    let none = table.lease(request(8, true)).await.unwrap();
    assert!(none.jobs.is_empty());
    assert!(none.next_in > Some(Duration::from_secs(1)), "{none:?}");
}

/// No step of this plan returns more than 2,000 rows.
pub(super) fn reads_few_rows(plan: &str) {
    // "(actual time=0.1..0.2 rows=500 loops=1)" of each step
    for step in plan.split("(actual time=").skip(1) {
        let mut numbers = step.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
        let rows = numbers
            .by_ref()
            .skip_while(|text| text.contains(".."))
            .find(|text| !text.is_empty());
        let loops = numbers.find(|text| !text.is_empty());
        let count = |text: Option<&str>| text.unwrap().parse::<u64>().unwrap();
        assert!(count(rows) * count(loops) <= 2_000, "{plan}");
    }
}

/// An operator's call uses an index as well: on a large table it could otherwise not end within its
/// time limit.
// fault Q23: an operator's command reads a large table whole, and reaches no end
#[tokio::test]
async fn a_command_reads_no_more_than_it_changes() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "command").await;
    let client = connect(&config).await;
    fill(&client, 60_000, 1).await;
    for statement in [
        "UPDATE hookgate_inbox SET state = CASE WHEN id % 2000 = 0 THEN 3 WHEN id % 2000 = 1 THEN 0 ELSE 2 END",
        "VACUUM FULL ANALYZE hookgate_inbox",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let (none, nobody) = (None::<i64>, None::<&str>);
    let asked: [&(dyn ToSql + Sync); 8] = [
        &none,
        &nobody,
        &i64::MAX,
        &None::<f64>,
        &i64::MIN,
        &1_000_i64,
        &nobody,
        &"default",
    ];
    for (state, index) in [
        (EntryState::Queued, "hookgate_inbox_pending_by_name"),
        (EntryState::Dead, "hookgate_inbox_dead"),
    ] {
        let retry = operate::retry_as("i.first_leased_at");
        let statement = operate::chunk(&Selection::all().state(state), &retry);
        let plan = plan(&client, &statement, &operate::TYPES, &asked, 1_000).await;
        assert!(plan.contains(index), "{plan}");
    }
}

/// Most entries wait, and few are running or old.
// fault Q28: a list of running entries, by age or by event id reads the whole inbox, and the first accept after a start all that waits
#[tokio::test]
async fn a_list_reads_no_more_than_it_shows() {
    let Some(server) = PostgresServer::start(&["fsync=off"]) else {
        return;
    };
    let config = database(&server.config(), "list").await;
    let client = connect(&config).await;
    fill(&client, 60_000, 1).await;
    for statement in [
        "UPDATE hookgate_inbox SET state = 1, tries = 1 WHERE id % 10000 = 0",
        "UPDATE hookgate_inbox SET accepted_at = now() - interval '3 days' WHERE id <= 50",
        "VACUUM FULL ANALYZE hookgate_inbox",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let day = Duration::from_secs(86_400);
    let (none, text) = (None::<i64>, None::<&str>);
    for (which, last, index, count) in [
        (
            Selection::all().state(EntryState::Running),
            i64::MAX,
            "hookgate_inbox_running_by_name",
            6,
        ),
        (
            Selection::all().older_than(day),
            50,
            "hookgate_inbox_pkey",
            50,
        ),
        (
            Selection::all().older_than(day).state(EntryState::Queued),
            50,
            "hookgate_inbox_pkey",
            50,
        ),
        (
            Selection::all().event_id("evt_1_5"),
            i64::MAX,
            "hookgate_inbox_event",
            1,
        ),
    ] {
        let event_id = which.event_id.clone();
        let asked: [&(dyn ToSql + Sync); 8] = [
            &none,
            &event_id,
            &last,
            &Some(86_400.0),
            &i64::MIN,
            &1_000_i64,
            &text,
            &"default",
        ];
        let statement = operate::page_of(row::LISTED, &which);
        let plan = plan(&client, &statement, &operate::TYPES, &asked, 100).await;
        assert!(plan.contains(index), "{plan}");
        let table = Table::new(patient(config.clone()), "default");
        let listed = table.list(which, Page::first(1_000)).await.unwrap();
        assert_eq!(listed.len(), count, "{index}");
    }
    let bound = plan(
        &client,
        operate::LAST_OF_AGE,
        &[Type::FLOAT8],
        &[&86_400.0],
        200,
    )
    .await;
    assert!(bound.contains("hookgate_inbox_pkey"), "{bound}");
}

/// Returns the plan of a statement, which must read no whole table, and fewer than `pages` pages.
pub(super) async fn plan(
    client: &Client,
    statement: &str,
    types: &[Type],
    parameters: &[&(dyn ToSql + Sync)],
    pages: u32,
) -> String {
    let explain = format!("EXPLAIN (ANALYZE, BUFFERS, FORMAT TEXT) {statement}");
    let statement = client.prepare_typed(&explain, types).await.unwrap();
    let rows = client.query(&statement, parameters).await.unwrap();
    let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    let plan = plan.join("\n");
    assert!(!plan.contains("Seq Scan"), "{plan}");
    let read = plan.split("shared hit=").nth(1).unwrap();
    let read: String = read.chars().take_while(char::is_ascii_digit).collect();
    assert!(read.parse::<u32>().unwrap() < pages, "{plan}");
    plan
}
