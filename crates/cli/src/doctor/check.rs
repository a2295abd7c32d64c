//! A check and its result.

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

use crate::fault::without_secrets;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Ok,
    Warn,
    Bad,
    NotMeasured,
}

impl Verdict {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::NotMeasured => "not measured",
        }
    }

    pub(super) fn style(self) -> Style {
        let colour = match self {
            Self::Ok => AnsiColor::Green,
            Self::Warn => AnsiColor::Yellow,
            Self::Bad => AnsiColor::Red,
            Self::NotMeasured => return Style::new().dimmed(),
        };
        Style::new().fg_color(Some(colour.into()))
    }
}

/// One check, in a sentence.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    pub(super) check: String,
    pub(super) verdict: Verdict,
    pub(super) says: String,
    /// The next step for the user. `null` where no step is needed.
    pub(super) advice: Option<String>,
}

impl Check {
    pub(super) fn new(
        check: impl Into<String>,
        verdict: Verdict,
        says: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        let advice = Some(without_secrets(&advice.into()));
        Self {
            advice,
            ..Self::judged(check.into(), verdict, says.into())
        }
    }

    pub(super) fn ok(check: impl Into<String>, says: impl Into<String>) -> Self {
        Self::judged(check.into(), Verdict::Ok, says.into())
    }

    /// A secret that stands where its variable's name should is a name here.
    fn judged(check: String, verdict: Verdict, says: String) -> Self {
        Self {
            check: without_secrets(&check),
            verdict,
            says: without_secrets(&says),
            advice: None,
        }
    }
}
