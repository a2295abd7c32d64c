//! One finding: claimed, handled, written into the mirror.

use std::fmt;
use std::future::Future;

use hookgate::{Claimed, StoreError};

use super::super::finding::{Finding, Reconciled};
use super::super::mirror::{Mirror, one};
use super::super::report::{Outcome, Report};
use super::super::source::RowSource;
use super::Reconcile;

impl<S: RowSource, M: Mirror> Reconcile<S, M> {
    /// Claims the finding, has it handled, writes it into the mirror, and commits the claim. If the process dies in between, or an
    /// event is handled meanwhile, a later pass finds the row again, maybe under the same id.
    pub(super) async fn settle<F, E>(
        &mut self,
        finding: &Finding,
        handle: &mut impl FnMut(Reconciled) -> F,
        report: &mut Report,
    ) -> Result<(), StoreError>
    where
        F: Future<Output = Result<(), E>>,
        E: fmt::Display,
    {
        let Some(id) = finding
            .reconciled
            .id()
            .filter(|_| !self.settings.is_filling)
        else {
            // Rows that are taken over are not handled, and unresolved ones are not claimed.
            if self.settings.is_filling {
                finding.record(&self.mirror).await?;
                report.handled += 1;
            } else if let Err(error) = handle(finding.reconciled.clone()).await {
                report.last_error = Some(error.to_string());
            }
            return Ok(());
        };
        let claim = self.claims.as_ref().map(|claims| claims.of(id));
        if let Some(claim) = &claim {
            match claim.take().await? {
                Claimed::Fresh => {}
                Claimed::Running { .. } => {
                    report.count(finding, Outcome::Elsewhere);
                    return Ok(());
                }
                Claimed::Done { .. } => {
                    report.count(finding, Outcome::Elsewhere);
                    return finding.record(&self.mirror).await;
                }
            }
        }
        // The findings of a page are handled one after the other, and events come meanwhile.
        let is_overtaken = self.is_overtaken(finding).await;
        if !matches!(is_overtaken, Ok(false)) {
            if let Some(claim) = &claim {
                claim.release().await?;
            }
            if is_overtaken? {
                report.count(finding, Outcome::Elsewhere);
            }
            return Ok(());
        }
        let handled = handle(finding.reconciled.clone());
        let handled = match &claim {
            Some(claim) => claim.hold(handled).await,
            None => handled.await,
        };
        match handled {
            Ok(()) => {
                report.count(finding, Outcome::Handled);
                let is_written = finding.write(&self.mirror).await?;
                if !is_written {
                    self.planner.look_again(finding.reconciled.row_id());
                }
                match &claim {
                    Some(claim) if is_written => drop(claim.commit().await?),
                    // The row is handled once more, and its finding may have the same id.
                    Some(claim) => drop(claim.release().await?),
                    None => {}
                }
            }
            Err(error) => {
                report.count(finding, Outcome::Failed);
                report.last_error = Some(error.to_string());
                if let Some(claim) = &claim {
                    claim.release().await?;
                }
            }
        }
        Ok(())
    }

    /// Whether the mirror's row was written since the finding.
    async fn is_overtaken(&self, finding: &Finding) -> Result<bool, StoreError> {
        let row = finding.reconciled.row_id();
        let known = one(&self.mirror, self.planner.model_id(), row).await?;
        Ok(known.map_or(0, |known| known.revision) != finding.revision)
    }
}
