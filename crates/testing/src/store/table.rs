//! The table of the contract, cell by cell.

use hookgate::{
    dedupe::ClaimToken,
    dedupe::Ownership::{Held, Lost},
};

use super::probe::Answer::{Fresh, Running};
use super::probe::{Kept, OneEvent, Probe, StoreUnderTest, advance, done_by, token};

/// The state in which a call finds a record, with its history. The first four states are all
/// "absent".
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

/// Uses one event for each cell. All are prepared before time passes once, and all are checked
/// after it.
pub(super) async fn every_cell<H: StoreUnderTest>(harness: &H, probe: &Probe) -> Kept {
    let mut cells = Vec::new();
    for found in FOUND {
        for call in CALLS {
            for same_token in [true, false] {
                let event = probe.event(&format!("{found:?}-{call:?}-{same_token}"));
                let holder = prepare(probe, found, &event).await?;
                let caller = if same_token { holder } else { token() };
                cells.push((found, call, event, holder, caller));
            }
        }
    }
    advance(harness, probe, 2).await;
    for (found, call, event, holder, caller) in cells {
        let own = caller == holder;
        let who = if own { "the same" } else { "another" };
        let when = format!("on {found:?} with {who} token");
        ask(probe, found, call, &event, holder, caller, &when).await?;
    }
    Ok(())
}

async fn prepare(probe: &Probe, found: Found, event: &OneEvent<'_>) -> Result<ClaimToken, String> {
    let holder = token();
    let (short, long) = (probe.units(1), probe.long());
    let ends = matches!(found, Found::LeaseOver);
    let lease = if ends { short } else { long };
    if !matches!(found, Found::Never) {
        event.begin(holder, lease).await?;
    }
    let running = "of a running claim";
    match found {
        Found::Never | Found::LeaseOver | Found::Running => {}
        Found::Released => event.release(holder, Held, running).await?,
        Found::RetentionOver => event.commit(holder, short, Held, running).await?,
        Found::Done => event.commit(holder, long, Held, running).await?,
    }
    Ok(holder)
}

/// Makes the call, then claims once more: the second answer shows the effect of the call on the
/// record.
async fn ask(
    probe: &Probe,
    found: Found,
    call: Call,
    event: &OneEvent<'_>,
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
                Found::Running if !own => Running,
                Found::Done => done_by(holder),
                _ => Fresh,
            };
            event.claim(caller, long, expected, when).await?;
        }
        Call::Renew => event.renew(caller, long, expected, when).await?,
        Call::Commit => event.commit(caller, long, expected, when).await?,
        Call::Release => event.release(caller, expected, when).await?,
    }
    let then = match (found, call) {
        (Found::Done, _) => done_by(holder),
        (Found::Running, Call::Commit) if own => done_by(holder),
        (Found::Running, Call::Release) if own => Fresh,
        (Found::Running, _) | (_, Call::Claim) => Running,
        _ => Fresh,
    };
    let after = format!("after {call:?} {when}");
    event.copy_claims(then, &after).await
}
