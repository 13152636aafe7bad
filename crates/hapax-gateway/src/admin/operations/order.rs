//! What a person sends to have an operation changed, understood.

use hapax_core::{Fence, OperationId, Reason};
use hapax_engine::operator::{Change, Order, Resolution};
use hapax_tower::{InvalidResolution, resolved_as_completed, resolved_as_failed};
use serde::de::DeserializeOwned;

use super::{
    documents::{FoundDocument, ReleaseDocument, Resolve},
    outcome::parse,
};
use crate::admin::{access::Visitor, problem::AdminProblem};

/// A change a person wants made, or only foreseen.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) order: Order,
    pub(super) change: Change,
    pub(super) dry_run: bool,
}

impl Wanted {
    pub(super) fn release(
        id: OperationId,
        visitor: &Visitor,
        body: &[u8],
    ) -> Result<Self, AdminProblem> {
        let release: ReleaseDocument = json(body)?;
        let dry_run = release.dry_run;
        Ok(Self { order: order(id, visitor, &release)?, change: Change::Release, dry_run })
    }

    pub(super) fn resolve(
        id: OperationId,
        visitor: &Visitor,
        body: &[u8],
    ) -> Result<Self, AdminProblem> {
        let Resolve { fence, who, why, even_if_running, dry_run, found, outcome } = json(body)?;
        let release = ReleaseDocument { fence, who, why, even_if_running, dry_run };
        let order = order(id, visitor, &release)?;
        let resolution = match (found, outcome) {
            (FoundDocument::Completed, Some(given)) => resolved_as_completed(parse(given)?),
            (FoundDocument::Failed, Some(given)) => resolved_as_failed(parse(given)?),
            (FoundDocument::Released, None) => Ok(Resolution::Released),
            (FoundDocument::Completed | FoundDocument::Failed, None) => {
                return Err(AdminProblem::invalid(
                    "outcome: say what the client is to be answered",
                ));
            }
            (FoundDocument::Released, Some(_)) => {
                return Err(AdminProblem::invalid("outcome: what never happened has none"));
            }
        };
        let invalid =
            |refusal: InvalidResolution| AdminProblem::invalid(format!("outcome: {refusal}"));
        let change = Change::Resolve(resolution.map_err(invalid)?);
        Ok(Self { order, change, dry_run })
    }
}

/// What a resolution and a release have in common.
fn order(
    id: OperationId,
    visitor: &Visitor,
    release: &ReleaseDocument,
) -> Result<Order, AdminProblem> {
    let seen = Fence::from_stored(release.fence);
    let seen = seen.ok_or_else(|| AdminProblem::invalid("fence: there is none below 1"))?;
    let reason = Reason::new(visitor.who(&release.who)?, &release.why);
    let reason = reason.map_err(|refusal| AdminProblem::invalid(refusal.to_string()))?;
    Ok(Order { id, seen, even_if_running: release.even_if_running, reason })
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, AdminProblem> {
    serde_json::from_slice(body)
        .map_err(|error| AdminProblem::invalid(format!("the body: {error}")))
}
