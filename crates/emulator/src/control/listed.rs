//! `controls`: the table itself.

use std::future::ready;

use serde_json::json;

use super::{Answered, CONTROLS, Call};
use crate::answer::Answer;

/// Not `async`: the type of such a future would depend on the table, which depends on it.
pub(super) fn controls(_: Call) -> Answered {
    let shown = CONTROLS.iter().map(|control| {
        json!({
            "method": control.method.as_str(), "path": control.path, "takes": control.takes,
            "answers": control.answers, "about": control.about,
        })
    });
    Box::pin(ready(Ok(Answer::data(&shown.collect::<Vec<_>>()))))
}
