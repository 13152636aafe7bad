//! Stands behind a proxy that sends again, without the key, what takes 100 ms.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use crate::{Conduct, Enclosure, PlainResponse, Species, Submission, conduct::answer};

pub(super) const SPECIES: Species = Species::broken(
    "proxy-resends-when-slow",
    "stands behind a proxy that sends again, without the key, what takes 100 ms",
    &["V14", "V16"],
    || Arc::new(ProxyResendsWhenSlow),
);

const PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct ProxyResendsWhenSlow;

impl Conduct for ProxyResendsWhenSlow {
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(async move {
            let mut first = pin!(answer(self, enclosure, submission));
            match tokio::time::timeout(PATIENCE, first.as_mut()).await {
                Ok(response) => response,
                Err(_) => {
                    enclosure.effect(submission, None);
                    first.await
                }
            }
        })
    }
}
