//! What a person sends to have an operation changed, understood.

use hapax_core::{Fence, OperationId, Reason};
use hapax_engine::operator::{Change, InvalidResolution, Order, Resolution};
use serde::de::DeserializeOwned;

use super::{
    documents::{Found, Release, Resolve},
    outcome::parse,
};
use crate::admin::problem::Problem;

/// A change a person wants made, or only foreseen.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) order: Order,
    pub(super) change: Change,
    pub(super) dry_run: bool,
}

impl Wanted {
    pub(super) fn release(id: OperationId, body: &[u8]) -> Result<Self, Problem> {
        let release: Release = json(body)?;
        let dry_run = release.dry_run;
        Ok(Self { order: order(id, &release)?, change: Change::Release, dry_run })
    }

    pub(super) fn resolve(id: OperationId, body: &[u8]) -> Result<Self, Problem> {
        let Resolve { fence, who, why, even_if_running, dry_run, found, outcome } = json(body)?;
        let order = order(id, &Release { fence, who, why, even_if_running, dry_run })?;
        let resolution = match (found, outcome) {
            (Found::Completed, Some(given)) => Resolution::completed(parse(given)?),
            (Found::Failed, Some(given)) => Resolution::failed(parse(given)?),
            (Found::Released, None) => Ok(Resolution::Released),
            (Found::Completed | Found::Failed, None) => {
                return Err(Problem::invalid("outcome: say what the client is to be answered"));
            }
            (Found::Released, Some(_)) => {
                return Err(Problem::invalid("outcome: what never happened has none"));
            }
        };
        let invalid = |refusal: InvalidResolution| Problem::invalid(format!("outcome: {refusal}"));
        let change = Change::Resolve(resolution.map_err(invalid)?);
        Ok(Self { order, change, dry_run })
    }
}

/// What a resolution and a release have in common.
fn order(id: OperationId, release: &Release) -> Result<Order, Problem> {
    let seen = Fence::from_stored(release.fence);
    let seen = seen.ok_or_else(|| Problem::invalid("fence: there is none below 1"))?;
    let reason = Reason::new(&release.who, &release.why);
    let reason = reason.map_err(|refusal| Problem::invalid(refusal.to_string()))?;
    Ok(Order { id, seen, even_if_running: release.even_if_running, reason })
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body: {error}")))
}
