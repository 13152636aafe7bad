//! What a person sends to have an operation changed.

use hapax_core::{Fence, OperationId, Reason};
use hapax_engine::operator::{Order, Resolution};
use serde::{Deserialize, de::DeserializeOwned};

use super::outcome::OutcomeOrder;
use crate::admin::problem::Problem;

/// Give the key back.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseOrder {
    fence: i64,
    who: String,
    why: String,
    #[serde(default)]
    even_if_running: bool,
}

impl ReleaseOrder {
    pub(super) fn parse(id: OperationId, body: &[u8]) -> Result<Order, Problem> {
        let Self { fence, who, why, even_if_running } = json(body)?;
        order(id, fence, even_if_running, Reason::new(&who, &why))
    }
}

/// Write down what became of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResolveOrder {
    fence: i64,
    who: String,
    why: String,
    #[serde(default)]
    even_if_running: bool,
    #[serde(rename = "as")]
    found: Found,
    outcome: Option<OutcomeOrder>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Found {
    Completed,
    Failed,
    Released,
}

impl ResolveOrder {
    pub(super) fn parse(id: OperationId, body: &[u8]) -> Result<(Order, Resolution), Problem> {
        let Self { fence, who, why, even_if_running, found, outcome } = json(body)?;
        let order = order(id, fence, even_if_running, Reason::new(&who, &why))?;
        let resolution = match (found, outcome) {
            (Found::Completed, Some(outcome)) => {
                Resolution::Completed(outcome.parse(200..=399, "completed")?)
            }
            (Found::Failed, Some(outcome)) => {
                Resolution::Failed(outcome.parse(400..=599, "failed")?)
            }
            (Found::Released, None) => Resolution::Released,
            (Found::Completed | Found::Failed, None) => {
                return Err(Problem::invalid("outcome: say what the client is to be answered"));
            }
            (Found::Released, Some(_)) => {
                return Err(Problem::invalid("outcome: what never happened has none"));
            }
        };
        Ok((order, resolution))
    }
}

fn order(
    id: OperationId,
    fence: i64,
    even_if_running: bool,
    reason: Result<Reason, hapax_core::note::InvalidReason>,
) -> Result<Order, Problem> {
    let seen = Fence::from_stored(fence);
    let seen = seen.ok_or_else(|| Problem::invalid("fence: there is none below 1"))?;
    let reason = reason.map_err(|refusal| Problem::invalid(refusal.to_string()))?;
    Ok(Order { id, seen, even_if_running, reason })
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| Problem::invalid(format!("the body: {error}")))
}
