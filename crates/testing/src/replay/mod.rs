//! Replay: a log of deliveries becomes a test.
//!
//! [The guide](hookgate::guide::testing#a-log-of-deliveries-becomes-a-test) says how it is used, which
//! faults there are, and what it observes.

mod answered;
mod attempt;
mod build_report;
mod builder;
mod choices;
mod clock;
mod display;
mod end_signal;
mod entry;
mod error;
mod fault_layer;
mod faults;
mod harness;
mod mode;
mod observations;
mod plan;
mod probe;
mod process;
mod report;
mod runner;
mod secrets;
mod through;

pub use answered::{Answered, AnsweredReport, Latency, Summary};
pub use builder::Replay;
pub use clock::ReplayClock;
pub use error::{ReplayError, ReplayErrorKind};
pub use fault_layer::{FaultLayer, FaultService};
pub use faults::Faults;
pub use harness::{Harness, HarnessLayer};
pub use mode::{AsRecorded, Mode, Portable, Raw, Resigned};
pub use report::{
    AttemptReport, CommitReport, EventReport, Origin, OtherReport, Report, RunEnd, RunReport,
    Verdict,
};
pub use through::Through;
