//! A client that retries until it knows.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::{
    handler::{Reply, handle},
    world::World,
};

/// Times a client tries before it gives up not knowing.
const ATTEMPTS_MAX: usize = 60;

/// Asks for one operation until the answer is final; `None` if it never was.
pub(super) async fn ask_until_known(world: &World, key: usize, request: u8) -> Option<Reply> {
    let ask = world.recorder.asked(key, request);
    let lease = world.dice.plan().lease;
    for _ in 0..ATTEMPTS_MAX {
        let reply = attempt(world, key, request).await;
        match reply {
            Some(Reply::TryAgain) | None => sleep(world.dice.up_to(lease)).await,
            Some(reply) => {
                world.recorder.answered(ask, reply);
                return Some(reply);
            }
        }
    }
    world.recorder.gave_up(ask);
    None
}

/// One request over the network: `None` if no answer came.
async fn attempt(world: &World, key: usize, request: u8) -> Option<Reply> {
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
    timeout(patience, handling).await.ok()?.ok()
}
