//! Triggers are added, changed and deleted.

use serde_json::{Map, Value};

use super::{Trigger, Triggers};
use crate::body;

impl Triggers {
    /// Adds a trigger.
    ///
    /// # Errors
    /// It is none, or its workflow has one of the same method.
    pub(crate) fn add(&self, trigger: Trigger) -> Result<(), String> {
        let mut list = self.locked();
        list.push(trigger);
        checked(&list).map_err(|(_, field, told)| {
            list.pop();
            format!("`{field}`: {told}")
        })
    }

    /// Changes the fields that the patch names, of a workflow's trigger. If the workflow has several, changes the one with this method.
    /// `None` if there is none.
    ///
    /// # Errors
    /// A sentence that states the expected form. Then nothing has changed.
    pub(crate) fn change(
        &self,
        workflow: &str,
        method: Option<&str>,
        patch: &Map<String, Value>,
    ) -> Option<Result<Trigger, String>> {
        let mut list = self.locked();
        let at = list.iter().position(|one| {
            one.workflow_id == workflow && method.is_none_or(|method| one.method == method)
        })?;
        Some(changed(&mut list, at, patch))
    }

    /// Deletes the triggers of a workflow. Returns whether there was one.
    pub(crate) fn remove(&self, workflow: &str) -> bool {
        let mut list = self.locked();
        let before = list.len();
        list.retain(|one| one.workflow_id != workflow);
        list.len() < before
    }
}

/// Checks a list of triggers.
///
/// # Errors
/// The place of the first wrong one, the field, and a sentence that states the expected form.
pub(crate) fn checked(list: &[Trigger]) -> Result<(), (usize, &'static str, String)> {
    for (at, trigger) in list.iter().enumerate() {
        let same = |other: &Trigger| {
            other.workflow_id == trigger.workflow_id && other.method == trigger.method
        };
        trigger.check().map_err(|(field, told)| (at, field, told))?;
        if list[..at].iter().any(same) {
            let told = "the workflow has a trigger of this method, expected each method once";
            return Err((at, "workflowId", told.to_owned()));
        }
    }
    Ok(())
}

fn changed(list: &mut [Trigger], at: usize, patch: &Map<String, Value>) -> Result<Trigger, String> {
    let trigger = body::patched(&list[at], patch).map_err(|error| body::told(&error))?;
    let before = std::mem::replace(&mut list[at], trigger);
    match checked(list) {
        Ok(()) => Ok(list[at].clone()),
        Err((_, field, told)) => {
            list[at] = before;
            Err(format!("`{field}`: {told}"))
        }
    }
}
