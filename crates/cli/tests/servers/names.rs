//! An inbox on PostgreSQL that programs of several names share.

use std::process::Command;

use super::command::{accept, database, url};
use crate::support::migrated;

// fault F17: two programs in one schema silence each other's events and run each other's entries
#[tokio::test]
async fn an_operator_is_asked_for_the_name_where_there_are_several() {
    let Some(server) = migrated(&["fsync=off"]).await else {
        return;
    };
    let url = url(&server, "");
    let stats = async |more: &[&str]| {
        let (url, more) = (url.clone(), more.join(" "));
        let ran = tokio::task::spawn_blocking(move || {
            Command::new(env!("CARGO_BIN_EXE_hookgate"))
                .args(["inbox", "stats", "--database-url-env", "INBOX_URL"])
                .args(more.split_whitespace())
                .env("INBOX_URL", url)
                .output()
                .unwrap()
        });
        let ran = ran.await.unwrap();
        let said = [ran.stdout, ran.stderr].concat();
        (ran.status.code(), String::from_utf8(said).unwrap())
    };
    let named = |name| database(&server).inbox(name).unwrap();
    let (code, said) = stats(&[]).await;
    assert!(code == Some(0) && said.starts_with("0 queued"), "{said}");
    accept(&named("orders"), "evt_1").await;
    let (code, said) = stats(&[]).await;
    assert!(code == Some(0) && said.starts_with("1 queued"), "{said}");
    accept(&named("members"), "evt_1").await;
    let (code, said) = stats(&[]).await;
    assert_eq!(code, Some(2), "{said}");
    for part in ["members, orders", "--name"] {
        assert!(said.contains(part), "{said}");
    }
    let (code, said) = stats(&["--name", "orders"]).await;
    assert!(code == Some(0) && said.starts_with("1 queued"), "{said}");
}
