//! `hookgate doctor`: checks settings before the first delivery does.

mod args;
mod check;
mod clock;
mod settings;

use std::process::ExitCode;

use console::Term;
use hookgate_testing::DeliveryLog;
use serde::Serialize;

use crate::fault::{Class, Fault, answer};
use crate::http_client;
use crate::out::Out;
use crate::printable::{hanging, printable};
use check::{Check, Verdict};

pub(crate) use args::Doctor;

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
