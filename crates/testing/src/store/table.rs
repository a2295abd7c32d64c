//! The table of the contract, cell by cell.

use hookgate::dedupe::Ownership::{Held, Lost};
use hookgate::{ClaimToken, EventKey};

use super::probe::{Answer, Kept, Probe, advance, done_by, key, token};
use crate::StoreUnderTest;

/// The state in which a call finds a record, with its history. The first four states are all "absent".
#[derive(Clone, Copy, Debug)]
enum Found {
    Never,
    Released,
    LeaseOver,
    RetentionOver,
    Running,
    Done,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Claim,
    Renew,
    Commit,
    Release,
}

const FOUND: [Found; 6] = [
    Found::Never,
    Found::Released,
    Found::LeaseOver,
    Found::RetentionOver,
    Found::Running,
    Found::Done,
];
const CALLS: [Call; 4] = [Call::Claim, Call::Renew, Call::Commit, Call::Release];

/// Uses one event for each cell. All are prepared before time passes once, and all are checked after it.
pub(super) async fn every_cell<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let mut cells = Vec::new();
    for found in FOUND {
        for call in CALLS {
            for same_token in [true, false] {
                let key = key(&format!("{found:?}-{call:?}-{same_token}"));
                let holder = prepare(probe, found, &key).await?;
                cells.push((
                    found,
                    call,
                    key,
                    holder,
                    if same_token { holder } else { token() },
                ));
            }
        }
    }
    advance(harness, probe, 2).await;
    for (found, call, key, holder, caller) in cells {
        let who = if caller == holder {
            "the same"
        } else {
            "another"
        };
        let when = format!("on {found:?} with {who} token");
        ask(probe, found, call, &key, holder, caller, &when).await?;
    }
    Ok(())
}

async fn prepare(probe: &Probe, found: Found, key: &EventKey) -> Result<ClaimToken, String> {
    let holder = token();
    let (short, long) = (probe.units(1), probe.long());
    let lease = if matches!(found, Found::LeaseOver) {
        short
    } else {
        long
    };
    if !matches!(found, Found::Never) {
        probe
            .claim(key, holder, lease, Answer::Fresh, "of a fresh event")
            .await?;
    }
    let running = "of a running claim";
    match found {
        Found::Never | Found::LeaseOver | Found::Running => {}
        Found::Released => probe.release(key, holder, Held, running).await?,
        Found::RetentionOver => probe.commit(key, holder, short, Held, running).await?,
        Found::Done => probe.commit(key, holder, long, Held, running).await?,
    }
    Ok(holder)
}

/// Makes the call, then claims once more: the second answer shows the effect of the call on the record.
async fn ask(
    probe: &Probe,
    found: Found,
    call: Call,
    key: &EventKey,
    holder: ClaimToken,
    caller: ClaimToken,
    when: &str,
) -> Kept {
    let (long, own) = (probe.long(), caller == holder);
    let takes_effect = own
        && matches!(
            (found, call),
            (Found::Running, _) | (Found::Done, Call::Commit)
        );
    let expected = if takes_effect { Held } else { Lost };
    match call {
        Call::Claim => {
            let expected = match found {
                Found::Running if !own => Answer::Running,
                Found::Done => done_by(holder),
                _ => Answer::Fresh,
            };
            probe.claim(key, caller, long, expected, when).await?;
        }
        Call::Renew => probe.renew(key, caller, long, expected, when).await?,
        Call::Commit => probe.commit(key, caller, long, expected, when).await?,
        Call::Release => probe.release(key, caller, expected, when).await?,
    }
    let then = match (found, call) {
        (Found::Done, _) => done_by(holder),
        (Found::Running, Call::Commit) if own => done_by(holder),
        (Found::Running, Call::Release) if own => Answer::Fresh,
        (Found::Running, _) | (_, Call::Claim) => Answer::Running,
        _ => Answer::Fresh,
    };
    let after = format!("after {call:?} {when}");
    probe.copy_claims(key, then, &after).await
}
