//! Id and type of any body, under keys that are pinned to a workspace or not.

use hookgate::event::{EventErrorKind, EventHead};

use super::super::choices::Choices;
use super::super::made;
use super::super::obvious::event::{Head, head};
use super::{MAX_BODY, verified};

pub fn run(input: &[u8]) {
    let mut choices = Choices(input);
    let pinned = choices.once_in(2).then_some("ws_1");
    let body = made::body(&mut choices);
    if body.len() > MAX_BODY {
        return;
    }
    let found = EventHead::from_verified(&verified(&body, pinned));
    let shown = || String::from_utf8_lossy(&body).into_owned();
    match head(&body, pinned) {
        Head::NoOpinion => {}
        Head::Of { id, event_type } => {
            let found = found.unwrap_or_else(|error| panic!("{error}: {}", shown()));
            assert_eq!(
                (found.id.as_str(), found.event_type.as_str()),
                (&*id, &*event_type)
            );
        }
        Head::Foreign => {
            let kind = found.map_err(|error| error.kind());
            assert_eq!(kind, Err(EventErrorKind::WorkspaceMismatch), "{}", shown());
        }
        Head::Unusable => {
            let error = found.expect_err(&shown());
            assert_ne!(
                error.kind(),
                EventErrorKind::WorkspaceMismatch,
                "{}",
                shown()
            );
            assert!(
                !format!("{error} {error:?}").contains(made::MARK),
                "{error:?}"
            );
        }
    }
}
