//! What runs in a process for one request.

use hapax_core::Record;
use hapax_engine::{Begun, Engine, Permit, Settled};
use tokio::time::sleep;

use super::{
    recorder::digest,
    store::{FaultyStore, Life},
    upstream::Call,
    world::{World, key_of},
};
use crate::history::Answer;

/// What a client hears: its last word, or `None` for "not now, try again".
pub(super) type Reply = Option<Answer>;

/// Handles one request.
pub(super) async fn handle(
    world: World,
    engine: Engine<FaultyStore>,
    life: Life,
    key: usize,
    request: u8,
) -> Reply {
    let ask = world.ask(key, request);
    let begun = if world.dice.plan().waiting {
        engine.begin_waiting(&ask, world.dice.plan().lease).await
    } else {
        engine.begin(&ask).await
    };
    match begun {
        Ok(Begun::Execute(permit)) => execute(&world, &life, permit, request, false).await,
        Ok(Begun::TakenOver { permit, .. }) => execute(&world, &life, permit, request, true).await,
        Ok(Begun::Replay(record)) => stored(&record),
        Ok(Begun::Mismatch(_)) => Some(Answer::Mismatch),
        Ok(Begun::InDoubt { .. }) => Some(Answer::InDoubt),
        Ok(Begun::Gone { .. }) => Some(Answer::Gone),
        Ok(Begun::Queued(_) | Begun::Busy { .. }) | Err(_) => None,
    }
}

/// Finishes an operation from its stored request.
pub(super) async fn finish(world: &World, life: &Life, permit: Permit<FaultyStore>) -> Reply {
    let request = permit.record().request().and_then(|stored| stored.first().copied())?;
    let first = permit.record().fence.get() <= 2 && world.dice.plan().queued;
    execute(world, life, permit, request, !first).await
}

async fn execute(
    world: &World,
    life: &Life,
    permit: Permit<FaultyStore>,
    request: u8,
    recovering: bool,
) -> Reply {
    pause(world).await;
    life.goes_on().await;
    let key = key_of(&permit.record().operation);
    let fence = permit.attempt().fence;
    let ended = world.upstream.call(Call { key, request, fence, recovering }, life).await;
    pause(world).await;
    life.goes_on().await;
    match permit.settle(ended).await {
        Ok(Settled::Done(record)) => {
            record.outcome().map(|outcome| Answer::Executed(digest(outcome)))
        }
        Ok(Settled::Superseded(record)) => record.as_deref().and_then(stored),
        Err(_) => None,
    }
}

/// As a stopped process, a slow disk or a moving machine would: nothing happens for a while.
async fn pause(world: &World) {
    if world.dice.happens(world.dice.plan().pauses) {
        sleep(world.dice.up_to(world.dice.plan().lease * 3)).await;
    }
}

/// What a finished record says.
fn stored(record: &Record) -> Reply {
    record.outcome().map(|outcome| Answer::Replayed(digest(outcome)))
}
