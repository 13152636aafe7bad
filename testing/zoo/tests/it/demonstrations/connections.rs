//! What follows the end of a connection.

use std::time::Duration;

use hapax_zoo::{RunningSpecies, Species};
use tokio::io::AsyncReadExt;

use super::Demonstration;
use crate::client::{Ask, MARKER, Told, write};

const PATIENCE: Duration = Duration::from_secs(2);

pub(super) const ALL: &[Demonstration] = &[
    ("stuck-after-disconnect", |species| Box::pin(stuck_after_disconnect(species))),
    ("rolled-back-after-disconnect", |species| Box::pin(rolled_back_after_disconnect(species))),
    ("cut-body-executed", |species| Box::pin(cut_body_executed(species))),
    ("freed-when-answer-untaken", |species| Box::pin(freed_when_answer_untaken(species))),
];

/// The client goes while the handler is held; what a retry is told once it is no longer refused, or
/// at the end.
async fn left_and_retried(species: &Species) -> (RunningSpecies, Told) {
    let running = species.start().await.unwrap();
    running.hold();
    let stream = write(running.address, &Ask::with_key("k-1").bytes()).await;
    running.handlers(1).await;
    drop(stream);
    // Until the server has seen it: what goes on shows in nothing but time.
    tokio::time::sleep(Duration::from_millis(200)).await;
    running.release();
    let retried = async {
        loop {
            let told = Ask::with_key("k-1").send(running.address).await;
            if told.status != 409 {
                return told;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let told = match tokio::time::timeout(PATIENCE, retried).await {
        Ok(told) => told,
        Err(_) => Ask::with_key("k-1").send(running.address).await,
    };
    (running, told)
}

async fn stuck_after_disconnect(species: &Species) -> bool {
    let (running, told) = left_and_retried(species).await;
    told.status == 409 && running.effects("payments", MARKER) == 0
}

async fn rolled_back_after_disconnect(species: &Species) -> bool {
    let (running, told) = left_and_retried(species).await;
    told.status == 201 && running.effects("payments", MARKER) == 2
}

async fn cut_body_executed(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let bytes = Ask::with_key("k-1").bytes();
    drop(write(running.address, &bytes[..bytes.len() - 1]).await);
    let _ = tokio::time::timeout(Duration::from_millis(500), running.handlers(1)).await;
    running.handlers_so_far() == 1
}

async fn freed_when_answer_untaken(species: &Species) -> bool {
    let running = species.start().await.unwrap();
    let ask = Ask::with_key("k-1").on("/reports");
    let mut stream = write(running.address, &ask.bytes()).await;
    stream.read_u8().await.unwrap();
    drop(stream);
    // Until the server has seen it: what goes on shows in nothing but time.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(ask.send(running.address).await.status, 201, "{}", species.name);
    running.effects("reports", MARKER) == 2
}
