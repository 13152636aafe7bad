//! What runs in a process for one request.

use std::time::Duration;

use hapax_core::{AttemptEnd, Record, Recovery};
use hapax_engine::{Admission, Engine, Permit, Settled};
use tokio::time::sleep;

use super::{
    plan::Flaw,
    recorder::digest,
    store::ProcessLife,
    upstream::UpstreamCall,
    world::{SimWorld, key_of},
};
use crate::history::ObservedAnswer;

/// What a client hears: its last word, or `None` for "not now, try again".
pub(super) type Reply = Option<ObservedAnswer>;

/// Handles one request.
pub(super) async fn handle(
    world: SimWorld,
    engine: Engine,
    life: ProcessLife,
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
        Ok(Admission::Execute(permit) | Admission::TakenOver { permit, .. }) => {
            execute(&world, &life, permit, request).await
        }
        Ok(Admission::Replay(record)) => stored(&record),
        Ok(Admission::Mismatch(_)) => Some(ObservedAnswer::Mismatch),
        Ok(Admission::InDoubt { .. }) => Some(ObservedAnswer::InDoubt),
        Ok(Admission::Gone { .. }) => Some(ObservedAnswer::Gone),
        Ok(Admission::Queued(_) | Admission::Busy { .. }) | Err(_) => None,
    }
}

/// Finishes an operation from its stored request.
pub(super) async fn finish(world: &SimWorld, life: &ProcessLife, permit: Permit) -> Reply {
    let request = permit.record().request().and_then(|stored| stored.first().copied())?;
    execute(world, life, permit, request).await
}

async fn execute(world: &SimWorld, life: &ProcessLife, permit: Permit, request: u8) -> Reply {
    pause(world).await;
    life.goes_on().await;
    let key = key_of(&permit.record().operation);
    let ended = match asked(world, &permit, key).await {
        Some(ended) => ended,
        None => {
            let fence = permit.attempt().fence;
            world.upstream.call(UpstreamCall { key, request, fence }, life).await
        }
    };
    pause(world).await;
    life.goes_on().await;
    let settled = match (&ended, permit.was_queued()) {
        // Its client was told that it will be done.
        (AttemptEnd::NothingSent, true) => permit.queue_again(world.dice.plan().lease).await,
        (_, _) => permit.settle(ended).await,
    };
    match settled {
        Ok(Settled::Done(record)) => {
            record.outcome().map(|outcome| ObservedAnswer::Executed(digest(outcome)))
        }
        Ok(Settled::Superseded(record)) => record.as_deref().and_then(stored),
        Err(_) => None,
    }
}

/// What is heard about an earlier sending, where that is asked; `None` if the operation may be sent.
async fn asked(world: &SimWorld, permit: &Permit, key: usize) -> Option<AttemptEnd> {
    if !permit.follows_an_owner() || world.dice.plan().recovery != Recovery::Probe {
        return None;
    }
    let quiet_in = match world.dice.plan().flaw {
        Some(Flaw::EarlyNoBelieved) => Duration::ZERO,
        Some(Flaw::AnswersForItBelieved) | None => permit.quiet_in(),
    };
    // Some stay until a "no" counts, some leave the doubt to whoever asks next.
    if !quiet_in.is_zero() && world.dice.below(4) > 0 {
        sleep(quiet_in).await;
    } else if !quiet_in.is_zero() {
        let done = world.upstream.probe(key).await;
        return Some(done.map_or(AttemptEnd::NotRecovered, AttemptEnd::Answered));
    }
    if let Some(answer) = world.upstream.probe(key).await {
        return Some(AttemptEnd::Answered(answer));
    }
    // Without a lease somebody else may have been told the same.
    let lost = permit.lease_left().is_zero();
    lost.then_some(AttemptEnd::NotRecovered)
}

/// As a stopped process, a slow disk or a moving machine would: nothing happens for a while.
async fn pause(world: &SimWorld) {
    if world.dice.happens(world.dice.plan().pauses) {
        sleep(world.dice.up_to(world.dice.plan().lease * 3)).await;
    }
}

/// What a finished record says.
fn stored(record: &Record) -> Reply {
    record.outcome().map(|outcome| ObservedAnswer::Replayed(digest(outcome)))
}
