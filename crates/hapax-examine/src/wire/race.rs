//! Duplicates whose last bytes leave together.

use std::time::Duration;

use futures_util::future::join_all;

use super::{Wire, draft::AddressedRequest, open::OpenRequest, open::Receiving};
use crate::{Exchange, ProbeLog};

impl Wire {
    /// Sends all but the last byte of each on a connection of its own, waits until the other side has that, then sends
    /// the last bytes one right after the other. The exchanges are those of the racers, in their order.
    pub(crate) async fn race(
        &self,
        log: &ProbeLog,
        racers: &[AddressedRequest<'_>],
        patience: Duration,
    ) -> Vec<Exchange> {
        let labels = (1..=racers.len()).map(|number| format!("duplicate {number}"));
        let opening = labels.zip(racers).map(|(label, racer)| async move {
            self.open(log, &label, *racer, Receiving::Ordinary).await
        });
        let (mut opened, mut ended) = (Vec::new(), Vec::new());
        for racer in join_all(opening).await {
            match racer {
                Ok(open) => opened.push(open),
                Err(failed) => ended.push(failed),
            }
        }
        OpenRequest::drained(&opened).await;
        // Nothing else is done between two of them.
        for open in &mut opened {
            open.release(log);
        }
        let sent: Vec<_> = opened.iter().filter_map(OpenRequest::sent).collect();
        if let (2.., Some(first), Some(last)) = (sent.len(), sent.iter().min(), sent.iter().max()) {
            log.raced(last.saturating_sub(*first));
        }
        ended.extend(join_all(opened.into_iter().map(|open| open.read(log, patience))).await);
        ended.sort_by_key(|exchange| exchange.number);
        ended
    }
}
