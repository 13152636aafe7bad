//! What the parts of an operation came to.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hapax::{OperationId, StoredStep};
use hapax_gateway::admin::documents::ShownDocument;
use serde::Serialize;

use super::{error::KeysError, source::KeysSource};

/// Everything known about one operation, its steps included.
#[derive(Debug, Serialize)]
pub(super) struct ShownKey {
    #[serde(flatten)]
    pub(super) shown: ShownDocument,
    /// Its finished steps, in order; nothing where a gateway is asked, which does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) steps: Option<Vec<StepDocument>>,
}

/// A finished step of an operation.
#[derive(Debug, Serialize)]
pub(super) struct StepDocument {
    pub(super) number: u16,
    pub(super) name: String,
    /// When it was kept.
    pub(super) at: String,
    pub(super) result_bytes: usize,
    /// What it came to, if that was asked for: as text, or in base64 if it is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result_base64: Option<String>,
}

/// The steps of an operation, with their results or without.
pub(super) async fn of(
    source: &KeysSource,
    id: OperationId,
    with_results: bool,
) -> Result<Option<Vec<StepDocument>>, KeysError> {
    let steps = source.steps(id).await?;
    Ok(steps.map(|steps| steps.iter().map(|step| StepDocument::of(step, with_results)).collect()))
}

impl StepDocument {
    fn of(stored: &StoredStep, with_result: bool) -> Self {
        let (step, result) = (&stored.step, stored.step.result());
        let text = with_result.then(|| std::str::from_utf8(result).ok().map(str::to_owned));
        let result_base64 = (text == Some(None)).then(|| BASE64_STANDARD.encode(result));
        Self {
            number: step.number(),
            name: step.name().as_str().to_owned(),
            at: stored.at.to_string(),
            result_bytes: result.len(),
            result: text.flatten(),
            result_base64,
        }
    }
}
