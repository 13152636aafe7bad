//! Our layer on a SQLite file.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hapax::Hapax;
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, layered::respond};

pub(super) const SPECIES: Species = Species::correct("hapax-layer-sqlite", conduct);

#[expect(clippy::expect_used, reason = "without its folder there is no species")]
fn conduct() -> Arc<dyn Conduct> {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    Arc::new(HapaxLayerSqlite { hapax: OnceCell::new(), folder })
}

#[derive(Debug)]
struct HapaxLayerSqlite {
    hapax: OnceCell<Hapax>,
    folder: TempDir,
}

impl Conduct for HapaxLayerSqlite {
    fn respond<'a>(
        &'a self,
        enclosure: &'a Arc<Enclosure>,
        submission: Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            let file = self.folder.path().join("keys.db");
            let address = format!("sqlite:{}", file.display());
            let opened = Box::pin(Hapax::open(&address));
            match self.hapax.get_or_try_init(|| opened).await {
                Ok(hapax) => respond(hapax, enclosure, submission).await,
                Err(error) => PlainResponse::problem(500, &error.to_string()),
            }
        })
    }
}
