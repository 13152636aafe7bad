//! Our layer on the memory store.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hapax::Hapax;
use tokio::sync::OnceCell;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, layered::respond};

pub(super) const SPECIES: Species =
    Species::correct("hapax-layer-memory", || Arc::new(HapaxLayerMemory::default()));

#[derive(Debug, Default)]
struct HapaxLayerMemory {
    hapax: OnceCell<Hapax>,
}

impl Conduct for HapaxLayerMemory {
    fn respond<'a>(
        &'a self,
        enclosure: &'a Arc<Enclosure>,
        submission: Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            match self.hapax.get_or_try_init(|| Box::pin(Hapax::open("memory:"))).await {
                Ok(hapax) => respond(hapax, enclosure, submission).await,
                Err(error) => PlainResponse::problem(500, &error.to_string()),
            }
        })
    }
}
