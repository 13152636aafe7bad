//! Duplicates whose last bytes leave together.

use std::{net::TcpStream, time::Duration};

use futures_util::future::join_all;

use super::{Wire, draft::AddressedRequest, open::OpenRequest, open::Receiving};
use crate::{Exchange, ProbeLog};

/// What came of duplicates that were sent at once.
#[derive(Debug)]
pub(crate) struct RacedExchanges {
    /// In the order of the racers.
    pub(crate) exchanges: Vec<Exchange>,
    /// How many of them were answered, and had been sent whole before the first success can have been heard: those
    /// behind it could not race with whoever had that.
    pub(crate) together: usize,
}

impl RacedExchanges {
    /// `early` are the numbers of those whose answer had begun when the last byte of all of them left: they may have
    /// been answered before any that was sent later.
    fn of(mut exchanges: Vec<Exchange>, early: &[u32]) -> Self {
        exchanges.sort_by_key(|exchange| exchange.number);
        let heard =
            |one: &Exchange| if early.contains(&one.number) { one.sent } else { one.answered };
        let successes = exchanges.iter().filter(|one| one.succeeded());
        let first = successes.filter_map(heard).min().unwrap_or(Duration::MAX);
        let is_in_time =
            |one: &&Exchange| one.answer().is_some() && one.sent.is_some_and(|sent| sent <= first);
        let together = exchanges.iter().filter(is_in_time).count();
        Self { exchanges, together }
    }
}

impl Wire {
    /// Sends all but the last byte of each on a connection of its own, waits until the other side has that, then sends
    /// the last bytes one right after the other, in this order of the racers; the others follow in their own.
    pub(crate) async fn race(
        &self,
        log: &ProbeLog,
        racers: &[AddressedRequest<'_>],
        order: &[usize],
        patience: Duration,
    ) -> RacedExchanges {
        let labels = (1..=racers.len()).map(|number| format!("duplicate {number}"));
        let opening = labels.zip(racers).map(|(label, racer)| async move {
            self.open(log, &label, *racer, Receiving::Ordinary).await
        });
        let (mut opened, mut ended) = (Vec::new(), Vec::new());
        for (at, racer) in join_all(opening).await.into_iter().enumerate() {
            match racer {
                Ok(open) => opened.push((order.iter().position(|one| *one == at), open)),
                Err(failed) => ended.push(failed),
            }
        }
        opened.sort_by_key(|(place, _)| place.unwrap_or(usize::MAX));
        let mut opened: Vec<_> = opened.into_iter().map(|(_, open)| open).collect();
        OpenRequest::drained(&opened).await;
        let looks: Vec<_> = opened.iter().map(|open| (open.number(), open.look())).collect();
        // Nothing else is done between two of them.
        for open in &mut opened {
            open.release(log);
        }
        let early: Vec<_> = looks
            .iter()
            .filter(|(_, look)| look.as_ref().is_some_and(has_come))
            .map(|(number, _)| *number)
            .collect();
        // A handle more would keep connections open that are over.
        drop(looks);
        let sent: Vec<_> = opened.iter().filter_map(OpenRequest::sent).collect();
        if let (2.., Some(first), Some(last)) = (sent.len(), sent.iter().min(), sent.iter().max()) {
            log.raced(last.saturating_sub(*first));
        }
        ended.extend(join_all(opened.into_iter().map(|open| open.read(log, patience))).await);
        RacedExchanges::of(ended, &early)
    }
}

/// Whether anything is there to be read, or the end.
fn has_come(connection: &TcpStream) -> bool {
    connection.peek(&mut [0]).is_ok()
}
