//! An inbox on PostgreSQL that programs of several names share.

use super::command::{accept, database, stats, url};
use crate::support::migrated;

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_is_asked_for_the_name_where_there_are_several() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let url = url(&server, "");
    let expect = |more: &[&str], code: i32, parts: &[&str]| {
        let (came, printed, said) = stats(&url, more);
        let said = printed + &said;
        assert_eq!(came, Some(code), "{said}");
        assert!(
            parts.iter().all(|part| said.contains(part)),
            "{parts:?}: {said}"
        );
        said
    };
    let named = |name| database(&server).inbox(name).unwrap();
    assert!(expect(&[], 0, &[]).starts_with("0 queued"));
    accept(&named("orders"), "evt_1").await;
    assert!(expect(&[], 0, &[]).starts_with("1 queued"));
    accept(&named("members"), "evt_1").await;
    expect(&[], 2, &["members, orders", "--name"]);
    assert!(expect(&["--name", "orders"], 0, &[]).starts_with("1 queued"));
}
