//! Lets duplicates wait for the answer of the first.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use tokio::sync::watch;

use crate::{Conduct, Enclosure, KeyFound, PlainResponse, Species, Submission, conduct::told};

pub(super) const SPECIES: Species =
    Species::correct("honest-waiting", || Arc::new(HonestWaiting::default()));

#[derive(Debug, Default)]
struct HonestWaiting {
    settled: watch::Sender<()>,
}

impl Conduct for HonestWaiting {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            loop {
                let mut settled = self.settled.subscribe();
                let found = self.claim(enclosure, submission);
                if !matches!(found, KeyFound::Running) {
                    if let Some(told) = told(self, found) {
                        return told;
                    }
                    break;
                }
                // The sender is in `self`, so it cannot be gone.
                let _ = settled.changed().await;
            }
            let run = self.execute(enclosure, submission).await;
            self.settle(enclosure, submission, &run);
            self.settled.send_replace(());
            run.now
        })
    }
}
