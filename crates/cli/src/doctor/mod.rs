//! `hookgate doctor`: checks settings before the first delivery does.

mod clock;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::builder::styling::{AnsiColor, Style};
use console::Term;
use hookgate_testing::DeliveryLog;
use serde::Serialize;

use crate::fault::{Class, Fault, answer, without_secrets};
use crate::hanging::hanging;
use crate::out::Out;
use crate::printable::printable;
use crate::secrets::SecretArgs;
use crate::{durations, http_client};

/// Check the settings of a receiver: secret, times, limits, capacity, and the clock
///
/// Give the settings that your receiver has; each that is not given is checked at its default. Nothing is changed, and nothing
/// is sent but one HEAD request to --url.
#[derive(clap::Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    secrets: SecretArgs,
    /// How long a handled event is remembered, such as 48h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "48h", help_heading = SETTINGS)]
    retention: Duration,
    /// The greatest age of a delivery that is accepted, such as 300s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "300s", help_heading = SETTINGS)]
    window_past: Duration,
    /// The furthest that a timestamp may be ahead, such as 300s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "300s", help_heading = SETTINGS)]
    window_ahead: Duration,
    /// How long a claim holds without renewal, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "30s", help_heading = SETTINGS)]
    lease: Duration,
    /// The time within which a delivery is answered, such as 4500ms
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "4500ms", help_heading = SETTINGS)]
    budget: Duration,
    /// The time within which a body must have arrived, such as 2s
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "2s", help_heading = SETTINGS)]
    body_deadline: Duration,
    /// The time after which a run is cut off, such as 10min
    #[arg(long, value_name = "DURATION", value_parser = durations::parse, default_value = "10min", help_heading = SETTINGS)]
    run_limit: Duration,
    /// The longest body that is accepted, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, help_heading = SETTINGS)]
    max_body: usize,
    /// The most runs at a time
    #[arg(long, value_name = "RUNS", default_value_t = 1_024, help_heading = SETTINGS)]
    max_runs: usize,
    /// How many handled events the store in memory holds
    #[arg(long, value_name = "EVENTS", default_value_t = hookgate::dedupe::Capacity::DEFAULT_RECORDS, help_heading = SETTINGS)]
    capacity: usize,
    /// How many events are expected in a second, such as 0.2. Without it, the capacity is checked against nothing
    #[arg(long, value_name = "EVENTS_PER_SECOND", value_parser = durations::per_second, help_heading = "Measured against")]
    rate: Option<f64>,
    /// A delivery log: for the clock's offset, and the longest body in it
    #[arg(long, value_name = "LOG", help_heading = "Measured against")]
    log: Option<PathBuf>,
    /// A URL: this machine's clock is compared with the Date header of its answer to a HEAD request, waited for 30 seconds at
    /// most
    #[arg(long, value_name = "URL", help_heading = "Measured against")]
    url: Option<String>,
}

const SETTINGS: &str = "Settings of the receiver";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    checks: &'a [Check],
    ok: usize,
    warn: usize,
    bad: usize,
    not_measured: usize,
}

pub(crate) fn run(doctor: &Doctor, out: &mut Out) -> Result<ExitCode, Fault> {
    // A log that can't be read ends the command at once: it is not a setting.
    let log = doctor.log.as_ref().map(|path| {
        DeliveryLog::open(path).map_err(|error| {
            let message = format!("the log {} can't be read", path.display());
            Fault::caused_by(Class::Input, &message, &error)
                .advise("it should hold one delivery a line, as a receiver records them")
        })
    });
    let log = log.transpose()?;
    let target = doctor.url.as_deref().map(http_client::target);
    // A host that does not answer is reported behind the checks, which do not need it.
    let (by_url, dead) = match target.transpose()?.map(|target| clock::by_url(&target)) {
        Some(Err(fault)) if fault.is_of_network() => (None, Some(fault)),
        by_url => (by_url.transpose()?, None),
    };

    let (mut checks, keys) = settings::secrets(&doctor.secrets);
    checks.extend(settings::all(doctor, log.as_ref()));
    checks.push(clock::by_log(doctor, log.as_ref(), keys));
    checks.push(match &dead {
        Some(fault) => clock::unreachable(fault),
        None => clock::by_date(doctor, by_url),
    });
    let answer = print(&checks, out)?;
    match dead {
        Some(fault) => {
            out.flush()?;
            Err(fault)
        }
        None => Ok(answer),
    }
}

fn print(checks: &[Check], out: &mut Out) -> Result<ExitCode, Fault> {
    let count = |verdict| checks.iter().filter(|it| it.verdict == verdict).count();
    let report = Report {
        checks,
        ok: count(Verdict::Ok),
        warn: count(Verdict::Warn),
        bad: count(Verdict::Bad),
        not_measured: count(Verdict::NotMeasured),
    };
    if out.is_json() {
        out.json_line(&report)?;
        return Ok(answer(report.bad == 0));
    }
    let width = checks
        .iter()
        .map(|it| printable(&it.check).chars().count())
        .max()
        .unwrap_or_default();
    // In a pipe each check stays one line, or two with its advice.
    let columns = match Term::stdout().size_checked() {
        Some((_, columns)) if out.is_terminal() => usize::from(columns),
        _ => usize::MAX,
    };
    for check in checks {
        let verdict = format!("{:<12}", check.verdict.name());
        let name = printable(&check.check);
        let says = printable(&check.says);
        let line = hanging(&format!("{verdict}  {name:<width$}  "), &says, columns);
        let painted = out.painted(&verdict, check.verdict.style());
        out.line(&line.replacen(&verdict, &painted, 1))?;
        if let Some(advice) = &check.advice {
            let advice = format!("→ {}", printable(advice));
            out.line(&hanging(&" ".repeat(width + 16), &advice, columns))?;
        }
    }
    out.line(&format!(
        "{} ok, {} to look at, {} to fix, {} not measured",
        report.ok, report.warn, report.bad, report.not_measured
    ))?;
    Ok(answer(report.bad == 0))
}

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
