//! A client that retries until it knows.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{
    handler::{Reply, handle},
    world::SimWorld,
};
use crate::history::ObservedAnswer;

/// Times a client tries before it gives up not knowing.
const ATTEMPTS_MAX: usize = 60;

/// Asks for one operation until the answer is final; [`ObservedAnswer::Unknown`] if it never was.
pub(super) async fn ask_until_known(world: &SimWorld, key: usize, request: u8) -> ObservedAnswer {
    let call = world.recorder.asked(key, request);
    let mut answer = ObservedAnswer::Unknown;
    for _ in 0..ATTEMPTS_MAX {
        if let Some(known) = attempt(world, key, request).await {
            answer = known;
            break;
        }
        sleep(world.dice.up_to(world.dice.plan().lease)).await;
    }
    world.recorder.answered(call, answer);
    answer
}

/// One request over the network.
async fn attempt(world: &SimWorld, key: usize, request: u8) -> Reply {
    let (number, engine, life) = world.some_process()?;
    let hangs_up = world.dice.happens(world.dice.plan().hang_ups);
    let patience = world.dice.plan().lease * 4 + Duration::from_secs(1);
    let handling = tokio::spawn(handle(world.clone(), engine, life.clone(), key, request));
    world.tie(number, &life, handling.abort_handle());
    if hangs_up {
        // As a server whose handlers are dropped with their connection: at any point whatever.
        sleep(world.dice.up_to(patience / 8)).await;
        handling.abort();
    }
    timeout(patience, handling).await.ok()?.ok()?
}
