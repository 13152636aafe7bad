//! What runs in a process for one request.

use hapax_core::{Body, Ended, Outcome, Record, State, StateTag};
use hapax_engine::{Begun, Engine, Permit, Settled};
use tokio::time::sleep;

use super::{
    store::{FaultyStore, Life},
    upstream::Call,
    world::{World, key_of},
};

/// What a client hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reply {
    /// The answer of this effect.
    Receipt(u64),
    /// Refused for good.
    Refused,
    /// The key belongs to another request.
    Mismatch,
    /// Nobody knows, and nobody will try.
    InDoubt,
    /// Not now: try again.
    TryAgain,
}

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
        Ok(Begun::Mismatch(_)) => Reply::Mismatch,
        Ok(Begun::InDoubt { .. }) => Reply::InDoubt,
        Ok(Begun::Queued(_) | Begun::Busy { .. } | Begun::Gone { .. }) | Err(_) => Reply::TryAgain,
    }
}

/// Finishes an operation from its stored request.
pub(super) async fn finish(world: &World, life: &Life, permit: Permit<FaultyStore>) -> Reply {
    let request = permit.record().request().and_then(|stored| stored.first().copied());
    let Some(request) = request else { return Reply::TryAgain };
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
    let told = match &ended {
        Ended::Answered(outcome) => answer(outcome),
        Ended::NothingSent { .. } | Ended::Unanswered { .. } | Ended::Interrupted { .. } => {
            Reply::TryAgain
        }
    };
    match permit.settle(ended).await {
        Ok(Settled::Done(record)) => match record.tag() {
            StateTag::Completed | StateTag::Failed => stored(&record),
            StateTag::Released => Reply::TryAgain,
            StateTag::Pending | StateTag::Running | StateTag::InDoubt | StateTag::Buried => told,
        },
        Ok(Settled::Superseded(Some(record))) => stored(&record),
        Ok(Settled::Superseded(None)) | Err(_) => Reply::TryAgain,
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
    match &record.state {
        State::Completed { outcome } | State::Failed { outcome } => answer(outcome),
        State::InDoubt { .. }
        | State::Pending { .. }
        | State::Running { .. }
        | State::Released
        | State::Buried => Reply::TryAgain,
    }
}

fn answer(outcome: &Outcome) -> Reply {
    match (outcome.status(), outcome.body()) {
        (201, Body::Kept(bytes)) => bytes
            .first_chunk()
            .map_or(Reply::TryAgain, |number| Reply::Receipt(u64::from_be_bytes(*number))),
        (400, _) => Reply::Refused,
        (_, _) => Reply::TryAgain,
    }
}
