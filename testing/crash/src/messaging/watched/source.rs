use std::time::Duration;

use hapax_core::inbox::Partition;
use hapax_messaging::consumer::{Arrived, Delivery, Disposition, Receipt, Source, SourceError};

use crate::place::Doom;

/// A source whose consumer may die right before and right after each call.
#[derive(Debug)]
pub struct WatchedSource<S> {
    source: S,
    doom: Doom,
    hasty: bool,
}

impl<S: Source> WatchedSource<S> {
    /// The source, with that end awaiting its consumer. A hasty one acknowledges what it has not yet
    /// handed over, which is wrong.
    pub fn new(source: S, doom: Doom, hasty: bool) -> Self {
        Self { source, doom, hasty }
    }
}

impl<S: Source> Source for WatchedSource<S> {
    type Receipt = WatchedReceipt<S::Receipt>;

    async fn next(&mut self) -> Result<Arrived<Self::Receipt>, SourceError> {
        self.doom.pass("source.next.before");
        let arrived = self.source.next().await?;
        self.doom.pass("source.next.after");
        Ok(match arrived {
            Arrived::Message(Delivery { incoming, receipt }) => {
                let mut receipt =
                    WatchedReceipt { receipt: Some(receipt), doom: self.doom.clone() };
                if self.hasty
                    && let Some(receipt) = receipt.receipt.take()
                {
                    receipt.settle(Disposition::Done).await?;
                }
                Arrived::Message(Delivery { incoming, receipt })
            }
            Arrived::Assigned(partitions) => Arrived::Assigned(partitions),
            Arrived::Revoked(partitions) => Arrived::Revoked(partitions),
            Arrived::End => Arrived::End,
        })
    }

    async fn start(&mut self, partition: &Partition, from: Option<i64>) -> Result<(), SourceError> {
        self.source.start(partition, from).await
    }

    async fn release(&mut self, partitions: &[Partition]) -> Result<(), SourceError> {
        self.source.release(partitions).await
    }

    fn longest_redelivery(&self) -> Option<Duration> {
        self.source.longest_redelivery()
    }
}

/// A receipt whose holder may die right before and right after it is settled.
#[derive(Debug)]
pub struct WatchedReceipt<R> {
    /// `None` where it was settled in haste.
    receipt: Option<R>,
    doom: Doom,
}

impl<R: Receipt> Receipt for WatchedReceipt<R> {
    async fn working(&self) -> Result<Option<Duration>, SourceError> {
        match &self.receipt {
            Some(receipt) => receipt.working().await,
            None => Ok(None),
        }
    }

    async fn settle(self, disposition: Disposition) -> Result<(), SourceError> {
        let call = async {
            match self.receipt {
                Some(receipt) => receipt.settle(disposition).await,
                None => Ok(()),
            }
        };
        self.doom.around("receipt.settle", call).await
    }
}
