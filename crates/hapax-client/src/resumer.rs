//! Finishing pending operations in the background.

use std::time::Duration;

use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use crate::{client::Client, lease::chain, transport::Transport};

/// A shorter pause would read the journal all the time.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Finishes pending operations until it is stopped or dropped.
///
/// What it is busy with then is given up, and stays pending for whoever comes next.
#[derive(Debug)]
#[must_use = "it stops when it is dropped"]
pub struct Resumer(JoinHandle<()>);

impl Resumer {
    pub(crate) fn start<T: Transport>(client: Client<T>, every: Duration) -> Self {
        Self(tokio::spawn(run(client, every.max(PAUSE_MIN))))
    }

    /// Stops, and returns when nothing more is sent.
    pub async fn stop(mut self) {
        self.0.abort();
        let _ = (&mut self.0).await;
    }
}

impl Drop for Resumer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn run<T: Transport>(client: Client<T>, every: Duration) {
    let mut times = interval(every);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        match client.resume().await {
            Ok(summary) => {
                for left in &summary.left {
                    tracing::warn!(error = chain(&left.error), "an operation cannot be resumed");
                }
            }
            Err(error) => tracing::warn!(error = chain(&error), "nothing could be resumed"),
        }
        if let Ok(journal) = client.journal()
            && let Err(error) = journal.purge().await
        {
            tracing::warn!(error = chain(&error), "the journal could not be purged");
        }
    }
}
