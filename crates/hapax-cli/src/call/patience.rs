//! Waiting for another process that has the operation.

use std::time::Duration;

use hapax::client::{
    CallError,
    journal::{EntryState, Journal, Name},
};
use tokio::time::{Instant, sleep, timeout};

use super::{
    line::{CallLine, millis},
    reporter::Reporter,
};

/// How often somebody else's operation is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a lease that is given up may take to be on disk. It ends by itself if it takes longer.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);

/// Asks until nobody else has the operation, and for the deadline at most.
pub(super) async fn in_turn<T>(
    (name, deadline): (&Name, Duration),
    teller: &Reporter,
    mut ask: impl AsyncFnMut(Duration) -> Result<T, CallError>,
) -> Result<T, CallError> {
    let ends = Instant::now() + deadline;
    let (mut left, mut is_told) = (deadline, false);
    loop {
        match ask(left).await {
            Err(CallError::Held { ends_in, .. }) if left > LOOK_EVERY => {
                if !is_told {
                    let ends_in_ms = millis(ends_in);
                    teller.say(&CallLine::Waiting { name: name.as_str(), ends_in_ms });
                    is_told = true;
                }
                sleep(ends_in.clamp(Duration::from_millis(10), LOOK_EVERY)).await;
                left = ends.saturating_duration_since(Instant::now());
            }
            ended => return ended,
        }
    }
}

/// Waits until an operation that was let go of is free in the journal; its key, if it is there.
pub(super) async fn released(journal: &Journal, name: &Name) -> Option<String> {
    let mut key = None;
    let looking = async {
        while let Ok(Some(entry)) = journal.find(name).await {
            key = Some(entry.key.as_str().to_owned());
            if !matches!(entry.state, EntryState::Pending { lease: Some(_) }) {
                return;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    // Then the next owner has to wait for the end of the lease.
    let _ = timeout(RELEASE_WITHIN, looking).await;
    key
}
