//! Duplicates whose last bytes leave together.

use std::time::Duration;

use futures_util::future::join_all;

use super::{ExchangeDraft, Wire};
use crate::{ExamRequest, Exchange, HttpAddress, ProbeLog};

impl Wire {
    /// Sends all but the last byte of each on a connection of its own, then the last bytes one right after the other.
    pub(crate) async fn race(
        &self,
        log: &ProbeLog,
        racers: &[(&HttpAddress, ExamRequest)],
        patience: Duration,
    ) -> Vec<Exchange> {
        let ready = racers.iter().enumerate().map(|(at, (address, request))| async move {
            let label = format!("duplicate {}", at + 1);
            let draft = ExchangeDraft::begin(log, &label, request, address);
            let mut stream = match self.connect(address, &[b"http/1.1"]).await {
                Ok(stream) => stream,
                Err(reason) => return Err(draft.failed(log, reason)),
            };
            let most = draft.request.len().saturating_sub(1);
            let held = draft.request.get(..most).unwrap_or_default();
            match stream.write(held).await {
                Ok(()) => Ok((draft, stream, request)),
                Err(reason) => Err(draft.failed(log, reason)),
            }
        });
        let mut ended = Vec::new();
        let mut held = Vec::new();
        for racer in join_all(ready).await {
            match racer {
                Ok(racer) => held.push(racer),
                Err(failed) => ended.push(failed),
            }
        }
        let mut reading = Vec::new();
        for (mut draft, mut stream, request) in held {
            let last = draft.request.len().saturating_sub(1);
            let written = stream.write(draft.request.get(last..).unwrap_or_default()).await;
            draft.sent = Some(log.elapsed());
            reading.push(async move {
                match written {
                    Ok(()) => draft.read(log, &mut stream, &request.method, patience).await,
                    Err(reason) => draft.failed(log, reason),
                }
            });
        }
        ended.extend(join_all(reading).await);
        ended
    }
}
