//! For handlers that take longer than the sender waits, or that must survive a deploy: a delivery is verified, **stored**, and
//! answered 2xx only once it is durable. Workers handle it afterwards.
//!
//! What stores it is a [`Sink`]: one operation, so that a queue that you run already can be one. What asks it is an [`Acceptor`], which
//! [`ReceiverBuilder::accept_into`](crate::ReceiverBuilder::accept_into) makes.
#![cfg_attr(
    feature = "inbox",
    doc = r##"
# What is promised

**What was accepted is handled at least once, and never lost.** An entry leaves the inbox as *done* or as a *dead letter*, and a dead
letter stays until an operator retries or purges it. Neither a panic, nor `kill -9`, nor a store that is down for a while changes that.

**Effects may repeat.** A handler whose process dies after its effect and before its settlement runs again. So does one whose lease
ended because its process stood still: the run goes on, another process may run beside it, and the end of the first changes nothing
([`Workers::on_lost_lease`]). Make handlers idempotent on the event's id, or write the effect and the id in one transaction.

**No order.** The sender promises none, and a failed event is overtaken while it waits. [`Workers::serial_by_row`] keeps two events of
a row from running at the same time, across all processes that are set so; which one is first it does not say.

# Working it off

The handlers are those that the layer guards, without the layer:

```
use hookgate::inbox::{RunningWorkers, Workers};
use hookgate::{BuildError, Event, Inbox};

async fn on_event(event: Event) -> http::StatusCode {
    println!("{} {}", event.id, event.event_type());
    http::StatusCode::NO_CONTENT
}

fn work(inbox: &Inbox) -> Result<RunningWorkers, BuildError> {
    Workers::new(inbox)
        .concurrency(32)
        .on_dead_letter(|dead| eprintln!("{} is dead after {} tries: {}", dead.event_id, dead.tries, dead.error))
        .start_handler(on_event) // in an axum app: .start(post(on_event).with_state(state))
}
# let _ = work;
```

[`Workers::start`] takes any tower service of that kind: axum's `post(handler)` with its state, what an
[`EventRouter`](crate::EventRouter) builds, your own. [`Workers::start_handler`] takes a function, as
[`Receiver::handle`](crate::Receiver::handle) does. What they answer means what it means to the layer:

| answer | the entry |
|---|---|
| 2xx, [`Unhandled`](crate::Unhandled) among them | done |
| [`DeadLetter`](crate::DeadLetter) | a dead letter at once, with its reason |
| any other status, an event that does not fit, a panic, an error of the service, [`run_limit`](Workers::run_limit) | tried again after its back-off; a dead letter after [`max_tries`](Workers::max_tries) |
| cut off by [`shutdown`](RunningWorkers::shutdown) | due at once; the try does not count |

With a failed try one line is kept: the outcome's name, and the reason that the handler gave ([`FailureReason`](crate::FailureReason)), up
to 512 bytes. No body is in it, unless the handler puts one there.

# Choosing

- **Lease** (30 s): how long an entry waits when its process is killed, and how long a process may stand still before another takes its
  work. It is renewed at a third for as long as the handler runs, so handlers may take far longer. It need not be longer than the longest pause
  of a healthy process: a handler that blocks its thread, a virtual machine that is moved.
- **Tries and back-off** (30; 10 s doubling up to 3 h, half of it by chance): 30 to 60 h in all, where the sender itself would have given up after
  26 h 36 min. Make the back-off shorter where what fails is your own database; fewer tries where somebody looks at dead letters each day.
- **Concurrency** (16): what the database behind the handlers can serve. No more entries are leased than run, so more processes share
  the work evenly.
- **Run limit** (10 min): far beyond the slowest good run. What reaches it has failed.

At shutdown stop the receiver first, then call [`RunningWorkers::shutdown`] with a limit that your platform grants. After `kill -9` start again at once: no
name is registered, and nothing waits but what the dead process had leased.
"##
)]
//!
#![cfg_attr(feature = "inbox", doc = include_str!("workers.md"))]

mod acceptor;
mod sink;

#[cfg(all(test, feature = "inbox"))]
mod contract;
#[cfg(feature = "inbox")]
mod durable;
#[cfg(feature = "inbox")]
mod engine;
#[cfg(feature = "inbox")]
mod entry;
#[cfg(all(test, feature = "inbox"))]
mod memory;
#[cfg(feature = "inbox")]
mod operate;
#[cfg(all(feature = "inbox", feature = "postgres"))]
mod postgres;
#[cfg(feature = "inbox")]
mod sqlite;
#[cfg(feature = "inbox")]
mod workers;

pub use acceptor::Acceptor;
#[cfg(all(feature = "inbox", feature = "postgres"))]
pub(crate) use postgres::MIGRATION as POSTGRES_MIGRATION;
pub use sink::{Accepted, Sink};
#[cfg(feature = "inbox")]
#[cfg_attr(docsrs, doc(cfg(feature = "inbox")))]
pub use {
    durable::Inbox,
    engine::{EntryId, EntryState, InboxStats, Listed, Page, Selection},
    operate::StoredEntry,
    sqlite::InboxOptions,
    workers::{Backoff, DeadEntry, Fate, Jitter, LostLease, RunningWorkers, Tried, Workers},
};
