//! Finishing pending operations in the background.

use std::time::Duration;

use hapax_core::OneLine;
use tokio::{
    task::JoinHandle,
    time::{MissedTickBehavior, interval},
};

use crate::{client::Client, transport::Transport};

/// A shorter pause would read the journal all the time.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// Finishes pending operations until it is stopped or dropped.
///
/// What it is busy with then is given up, and stays pending for whoever comes next.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let client = Client::builder().journal(file).build_on(app)?;
/// let resumer = client.resumer(Duration::from_secs(60));
/// // The program does its work; what it leaves pending is finished meanwhile.
/// resumer.stop().await;
/// # Ok(())
/// # }
/// ```
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
                    tracing::warn!(
                        error = OneLine::of(&left.error).to_string(),
                        "an operation cannot be resumed"
                    );
                }
            }
            Err(error) => {
                tracing::warn!(error = OneLine::of(&error).to_string(), "nothing could be resumed")
            }
        }
        if let Ok(journal) = client.journal()
            && let Err(error) = journal.purge().await
        {
            tracing::warn!(
                error = OneLine::of(&error).to_string(),
                "the journal could not be purged"
            );
        }
    }
}
