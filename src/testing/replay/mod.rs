//! Replays.

mod answered;
mod builder;
mod clock;
mod conclude;
mod diff;
mod display;
mod drive;
mod entry;
mod fault_layer;
mod faults;
mod harness;
mod ledger;
mod life;
mod mode;
mod plan;
mod probe;
mod report;
mod secrets;
mod through;

pub use answered::{Answered, AnsweredReport, Latency, Summary};
pub use builder::Replay;
pub use clock::ReplayClock;
pub use diff::{Came, EventDiff, ReportDiff};
pub use fault_layer::{FaultLayer, FaultService};
pub use faults::Faults;
pub use harness::{Harness, HarnessLayer};
pub use mode::{AsRecorded, Mode, Portable, Raw, Resigned};
pub use report::{
    AttemptReport, CommitReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport,
    Verdict,
};
pub use through::Through;
