//! Owners that are killed, slow or stopped.

use std::time::Duration;

use tokio::time::sleep;

use super::{
    Check, Finding, LEASE,
    asking::{Order, Told, counted, insist, seen, succeeded, tally, until_effects},
};
use crate::{error::BenchError, stage::Stage, wire::Wrong};

/// How long a client goes on asking: well past the lease.
const INSISTENCE: Duration = Duration::from_secs(6);

/// The server is killed after it has answered, and started again.
pub(super) async fn restart(stage: &mut Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "restart";
    let mut before = stage.client(0).await?;
    let first = before.pay(KEY, &Order::default().body()).await;
    stage.crash()?;
    let mut after = stage.client(0).await?;
    after.share(&before);
    let second = after.pay(KEY, &Order::default().body()).await;
    let effects = stage.effects(KEY);
    let same = succeeded(&first).is_some() && succeeded(&first) == succeeded(&second);
    let said = format!("{}: {}, then {}", counted(effects), seen(&first), seen(&second));
    Ok(Finding { check: Check::Restart, yes: Some(effects == 1 && same), effects, said })
}

/// The server is killed when the effect is done and nobody was told.
pub(super) async fn killed(stage: &mut Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "killed";
    let order = Order::waiting(Duration::from_secs(20));
    let like = stage.client(0).await?;
    let mut client = stage.client(0).await?;
    client.share(&like);
    let first = tokio::spawn(async move { client.pay(KEY, &order.body()).await });
    until_effects(stage, KEY, 1).await;
    stage.crash()?;
    first.abort();
    let told = insist(stage, 0, &like, (KEY, order), INSISTENCE).await?;
    let effects = stage.effects(KEY);
    let said = format!("{}: retries {}", counted(effects), tally(&told));
    Ok(Finding { check: Check::Killed, yes: Some(effects == 1), effects, said })
}

/// The handler works longer than the lease, while a duplicate comes.
pub(super) async fn slow(stage: &Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "slow";
    let order = Order::waiting(LEASE * 5 / 2);
    let mut owner = stage.client(0).await?;
    let mut other = stage.client(0).await?;
    other.share(&owner);
    let first = tokio::spawn(async move { owner.pay(KEY, &order.body()).await });
    sleep(LEASE * 5 / 4).await;
    let second = other.pay(KEY, &order.body()).await;
    let first = first.await.unwrap_or_else(|error| Err(error.into()));
    let third = other.pay(KEY, &order.body()).await;
    let effects = stage.effects(KEY);
    let said = format!(
        "{}: first {}, meanwhile {}, later {}",
        counted(effects),
        seen(&first),
        seen(&second),
        seen(&third)
    );
    Ok(Finding { check: Check::Slow, yes: Some(effects == 1), effects, said })
}

/// The owner is stopped past its lease, another server is asked, and the owner goes on.
pub(super) async fn paused(stage: &mut Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "paused";
    if !stage.can_be_shared() {
        let said = "does not arise: its memory is its own".to_owned();
        return Ok(Finding { check: Check::Paused, yes: None, effects: 0, said });
    }
    stage.add_server()?;
    let order = Order::waiting(LEASE / 4);
    let like = stage.client(0).await?;
    let mut client = stage.client(0).await?;
    client.share(&like);
    let owner = tokio::spawn(async move { client.pay(KEY, &order.body()).await });
    until_effects(stage, KEY, 1).await;
    stage.server(0).freeze()?;
    let other = insist(stage, 1, &like, (KEY, order), INSISTENCE).await?;
    stage.server(0).thaw();
    let owner: Told = owner.await.unwrap_or_else(|error| Err(Wrong::from(error)));
    let later = insist(stage, 1, &like, (KEY, order), Duration::ZERO).await?;
    let effects = stage.effects(KEY);
    let said = format!(
        "{}: other server {}; the owner's client {}; later {}",
        counted(effects),
        tally(&other),
        seen(&owner),
        tally(&later)
    );
    let mut answers: Vec<_> =
        other.iter().chain([&owner]).chain(&later).filter_map(succeeded).collect();
    answers.dedup();
    Ok(Finding { check: Check::Paused, yes: Some(answers.len() <= 1), effects, said })
}
