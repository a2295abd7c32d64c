//! One finding: claimed, handled, written into the mirror.

use std::fmt;
use std::future::Future;

use hookgate::dedupe::{Claimed, StoreError};

use super::super::finding::{Finding, Reconciled};
use super::super::mirror::Mirror;
use super::super::report::{Outcome, Report};
use super::super::source::RowSource;
use super::super::steps::Settings;
use super::Reconcile;

impl<S: RowSource, M: Mirror> Reconcile<S, M> {
    /// Claims the finding, puts its row in doubt, has it handled, writes it into the mirror, and
    /// commits the claim. If the process dies in between, or an event is handled meanwhile, a later
    /// pass finds the row again, maybe under the same id.
    pub(super) async fn settle<F, E>(
        &mut self,
        mut finding: Finding,
        handle: &mut impl FnMut(Reconciled) -> F,
        report: &mut Report,
    ) -> Result<(), StoreError>
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        let Settings {
            is_filling,
            fills_table,
            ..
        } = self.settings;
        if is_filling && !fills_table {
            finding.record(&self.mirror).await?;
            report.handled += 1;
            return Ok(());
        }
        let Some(id) = finding.reconciled.id() else {
            if let Err(error) = handle(finding.reconciled.clone()).await {
                report.last_error = Some(error.to_string());
            }
            return Ok(());
        };
        let claims = self.claims.as_ref().filter(|_| !is_filling);
        let claim = claims.map(|claims| claims.of(id));
        if let Some(claim) = &claim {
            match claim.take().await? {
                Claimed::Fresh => {}
                Claimed::Running { .. } => {
                    report.count(&finding, Outcome::Elsewhere);
                    return Ok(());
                }
                Claimed::Done { .. } => {
                    report.count(&finding, Outcome::Elsewhere);
                    return finding.record(&self.mirror).await;
                }
            }
        }
        // The findings of a page are handled one after the other, and events come meanwhile.
        let is_marked = finding.mark(&self.mirror).await;
        if !matches!(is_marked, Ok(true)) {
            if let Some(claim) = &claim {
                claim.release().await?;
            }
            if !is_marked? {
                report.count(&finding, Outcome::Elsewhere);
            }
            return Ok(());
        }
        self.planner.marked(&finding);
        let handled = handle(finding.reconciled.clone());
        let handled = match &claim {
            Some(claim) => claim.hold(handled).await,
            None => handled.await,
        };
        match handled {
            Ok(()) => {
                report.count(&finding, Outcome::Handled);
                let is_written = finding.write(&self.mirror).await?;
                match &claim {
                    Some(claim) if is_written => drop(claim.commit().await?),
                    // The row is handled once more, and its finding may have the same id.
                    Some(claim) => drop(claim.release().await?),
                    None => {}
                }
            }
            Err(error) => {
                report.count(&finding, Outcome::Failed);
                report.last_error = Some(error.to_string());
                if let Some(claim) = &claim {
                    claim.release().await?;
                }
            }
        }
        Ok(())
    }
}
