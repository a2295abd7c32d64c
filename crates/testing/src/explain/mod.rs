//! Why a signature fails: [the guide](hookgate::guide::explain) says how to read the answer, and
//! what is searched.
//!
#![cfg_attr(doctest, doc = include_str!("../../../../docs/explain.md"))]

mod body;
mod cause;
mod clock;
mod explainer;
mod explanation;
mod header;
mod hint;
mod json;
mod request;
mod search;
mod secret;
mod trial_key;
mod writer;

pub use cause::{Cause, CauseGroup, CauseKind};
pub use explainer::Explainer;
pub use explanation::Explanation;
pub use hint::{Hint, HintKind};
pub use search::Tried;
