//! The tests that every mirror passes.

use std::time::Duration;

use hookgate::{
    dedupe::StoreError,
    event::{DataModelId, RowId},
    internal::from_foreign_json,
};

use super::hash::RowHash;
use super::mirror::{Mirror, Mirrored};
use super::row_state::{Life, RowState};

/// Checks a mirror against the contract of [`Mirror`]. It must have no state of the data models
/// `dm_contract` and `dm_contract_2`, and has some afterwards.
///
/// # Errors
/// A call of the mirror failed.
///
/// # Panics
/// The mirror breaks the contract; the message says which rule.
///
/// ```
/// use hookgate_client::reconcile::{MemoryMirror, contract};
///
/// hookgate::block_on(contract::check(&MemoryMirror::default())).unwrap();
/// hookgate::block_on(contract::check(&MemoryMirror::with_values())).unwrap();
/// ```
pub async fn check(mirror: &impl Mirror) -> Result<(), StoreError> {
    let (model, other) = (
        DataModelId::from("dm_contract"),
        DataModelId::from("dm_contract_2"),
    );
    let row = RowId::from("row_ü 'x'");
    let rows = std::slice::from_ref(&row);
    assert!(
        mirror.get(&model, rows).await?.is_empty(),
        "a row without a state has none"
    );
    assert!(
        mirror.get(&model, &[]).await?.is_empty(),
        "no row is asked for"
    );
    assert!(
        mirror.list(&model, None, 10).await?.is_empty(),
        "an empty mirror lists no row"
    );

    // Every field leads back to itself.
    let mut revision = 0;
    for state in states(mirror.keeps_values()) {
        assert!(
            mirror.swap(&model, &row, revision, state.clone()).await?,
            "the present revision is written on"
        );
        revision += 1;
        let read = mirror.get(&model, rows).await?;
        let known = Mirrored { revision, state };
        assert_eq!(
            read,
            [(row.clone(), known.clone())],
            "a state is read as it was written"
        );
        assert_eq!(
            mirror.list(&model, None, 10).await?,
            [(row.clone(), known)],
            "and listed so"
        );
    }
    for wrong in [0, revision - 1, revision + 1, u64::MAX] {
        let state = RowState::blank(Life::Deleted);
        assert!(
            !mirror.swap(&model, &row, wrong, state).await?,
            "another revision is not written on"
        );
    }
    assert!(
        mirror
            .get(&model, rows)
            .await?
            .iter()
            .all(|(_, known)| known.revision == revision),
        "a write that was refused changes nothing"
    );
    assert!(
        mirror.get(&other, rows).await?.is_empty(),
        "another data model has rows of its own"
    );

    // The order of a list is that of the ids' bytes, and every row is listed once.
    let mut ids: Vec<_> = ["b", "B", "a", "ä", "Z", "row_10", "row_9", "row_1"]
        .map(RowId::from)
        .to_vec();
    for id in &ids {
        let state = RowState::blank(Life::Live);
        assert!(
            mirror.swap(&other, id, 0, state.clone()).await?,
            "a row without a state has revision 0"
        );
        assert!(
            !mirror.swap(&other, id, 0, state).await?,
            "and has another one then"
        );
    }
    ids.sort();
    let mut listed: Vec<RowId> = Vec::new();
    loop {
        let page = mirror.list(&other, listed.last(), 3).await?;
        let is_last = page.len() < 3;
        listed.extend(page.into_iter().map(|(row, _)| row));
        if is_last || listed.len() > ids.len() {
            break;
        }
    }
    assert_eq!(listed, ids, "a list is in the order of the ids' bytes");
    let mut got: Vec<_> = mirror
        .get(&other, &ids)
        .await?
        .into_iter()
        .map(|(row, _)| row)
        .collect();
    got.sort();
    assert_eq!(got, ids, "many rows are read at once");

    // Deleted rows are forgotten once they are old enough, and others never.
    let hour = Duration::from_secs(60 * 60);
    let deleted = &ids[..2];
    for id in deleted {
        let state = RowState::blank(Life::Deleted);
        assert!(mirror.swap(&other, id, 1, state).await?);
    }
    let uncreated = RowState::blank(Life::Uncreated);
    assert!(mirror.swap(&other, &ids[2], 1, uncreated).await?);
    for (age, forgotten) in [
        (Duration::MAX, 0),
        (hour, 0),
        (Duration::ZERO, 2),
        (Duration::ZERO, 0),
    ] {
        assert_eq!(
            mirror.forget(&other, age).await?,
            forgotten,
            "deleted rows are forgotten by their age, and others not"
        );
    }
    assert_eq!(
        mirror.list(&other, None, 100).await?.len(),
        ids.len() - deleted.len(),
        "the other rows stay"
    );
    assert_eq!(
        mirror.get(&model, rows).await?.len(),
        1,
        "another data model forgets nothing"
    );
    for id in deleted {
        assert!(
            mirror
                .swap(&other, id, 0, RowState::blank(Life::Live))
                .await?,
            "a forgotten row has no state"
        );
    }
    Ok(())
}

fn states(keeps_values: bool) -> Vec<RowState> {
    let values = r#"{"Name":"Ada \u0000 ü","Total":12.50}"#;
    let properties = from_foreign_json(values.as_bytes()).unwrap_or_default();
    let full = RowState {
        life: Life::Live,
        updated_at: Some(1_795_253_400_000_001),
        read_at: Some(-1),
        hash: RowHash::of(&properties),
        values: keeps_values.then(|| values.to_owned()),
    };
    let uncreated = RowState {
        life: Life::Uncreated,
        read_at: None,
        ..full.clone()
    };
    vec![
        full,
        uncreated,
        RowState::blank(Life::Deleted),
        RowState::blank(Life::Live),
    ]
}
