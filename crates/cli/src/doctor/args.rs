//! The arguments of `hookgate doctor`.

use std::path::PathBuf;
use std::time::Duration;

use crate::durations;
use crate::secrets::SecretArgs;

/// Check the settings of a receiver: secret, times, limits, capacity, and the clock
///
/// Give the settings that your receiver has; each that is not given is checked at its default.
/// Nothing is changed, and nothing is sent but one HEAD request to --url.
#[derive(clap::Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
    /// How long a handled event is remembered, such as 48h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "48h", help_heading = SETTINGS)]
    pub(super) retention: Duration,
    /// The greatest age of a delivery that is accepted, such as 300s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "300s", help_heading = SETTINGS)]
    pub(super) window_past: Duration,
    /// The furthest that a timestamp may be ahead, such as 300s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "300s", help_heading = SETTINGS)]
    pub(super) window_ahead: Duration,
    /// How long a claim holds without renewal, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "30s", help_heading = SETTINGS)]
    pub(super) lease: Duration,
    /// The time within which a delivery is answered, such as 4500ms
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "4500ms", help_heading = SETTINGS)]
    pub(super) budget: Duration,
    /// The time within which a body must have arrived, such as 2s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "2s", help_heading = SETTINGS)]
    pub(super) body_deadline: Duration,
    /// The time after which a run is cut off, such as 10min
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "10min", help_heading = SETTINGS)]
    pub(super) run_limit: Duration,
    /// The longest body that is accepted, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, help_heading = SETTINGS)]
    pub(super) max_body: usize,
    /// The most runs at a time
    #[arg(long, value_name = "RUNS", default_value_t = 1_024, help_heading = SETTINGS)]
    pub(super) max_runs: usize,
    /// How many handled events the store in memory holds
    #[arg(long, value_name = "EVENTS", default_value_t = hookgate::dedupe::Capacity::DEFAULT_RECORDS, help_heading = SETTINGS)]
    pub(super) capacity: usize,
    /// How many events are expected in a second, such as 0.2. Without it, the capacity is checked
    /// against nothing
    #[arg(long, value_name = "EVENTS_PER_SECOND", value_parser = durations::per_second, help_heading = "Measured against")]
    pub(super) rate: Option<f64>,
    /// A delivery log: for the clock's offset, and the longest body in it
    #[arg(long, value_name = "LOG", help_heading = "Measured against")]
    pub(super) log: Option<PathBuf>,
    /// A URL: this machine's clock is compared with the Date header of its answer to a HEAD
    /// request, waited for 30 seconds at most
    #[arg(long, value_name = "URL", help_heading = "Measured against")]
    pub(super) url: Option<String>,
}

const SETTINGS: &str = "Settings of the receiver";
