//! Retries while everything runs.

use std::time::Duration;

use tokio::task::JoinSet;

use super::{
    Check, Finding,
    asking::{Order, counted, seen, succeeded, tally},
};
use crate::{error::BenchError, stage::Stage};

const DUPLICATES: u32 = 32;
/// Long enough for all duplicates to come while the first is at work.
const WORK: Duration = Duration::from_secs(1);

pub(super) async fn twice(stage: &Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "twice";
    let mut client = stage.client(0).await?;
    let first = client.pay(KEY, &Order::default().body()).await;
    let second = client.pay(KEY, &Order::default().body()).await;
    let effects = stage.effects(KEY);
    let same = succeeded(&first).is_some() && succeeded(&first) == succeeded(&second);
    let said = format!("{}: {}, {}", counted(effects), seen(&first), seen(&second));
    Ok(Finding { check: Check::Twice, yes: Some(effects == 1 && same), effects, said })
}

pub(super) async fn at_once(stage: &Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "at-once";
    let body = Order { every_time: true, ..Order::waiting(WORK) }.body();
    let mut last = stage.client(0).await?;
    let mut tasks = JoinSet::new();
    for _ in 0..DUPLICATES {
        let (mut client, body) = (stage.client(0).await?, body.clone());
        client.share(&last);
        tasks.spawn(async move { client.pay(KEY, &body).await });
    }
    let mut told = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        told.push(ended.unwrap_or_else(|error| Err(error.into())));
    }
    // Whoever lost its answer in the crowd comes once more.
    let later = last.pay(KEY, &body).await;
    let effects = stage.effects(KEY);
    let said = format!("{}: {}; later {}", counted(effects), tally(&told), seen(&later));
    let yes = effects == 1 && succeeded(&later).is_some();
    Ok(Finding { check: Check::AtOnce, yes: Some(yes), effects, said })
}

pub(super) async fn other_body(stage: &Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "other-body";
    let mut client = stage.client(0).await?;
    let first = client.pay(KEY, &Order::default().body()).await;
    let other = client.pay(KEY, &Order { amount: 2, ..Order::default() }.body()).await;
    let effects = stage.effects(KEY);
    let refused = other.as_ref().is_ok_and(|answer| (400..500).contains(&answer.status));
    let said = format!("{}: {}, then {}", counted(effects), seen(&first), seen(&other));
    Ok(Finding { check: Check::OtherBody, yes: Some(refused && effects == 1), effects, said })
}

/// Neither is wrong: what matters is that one knows which.
pub(super) async fn failure(stage: &Stage<'_>) -> Result<Finding, BenchError> {
    const KEY: &str = "failure";
    let mut client = stage.client(0).await?;
    let body = Order { status: 500, ..Order::default() }.body();
    let first = client.pay(KEY, &body).await;
    let second = client.pay(KEY, &body).await;
    let effects = stage.effects(KEY);
    let kept = if effects == 1 { "kept" } else { "run again" };
    let said = format!("{kept}, {}: {}, {}", counted(effects), seen(&first), seen(&second));
    Ok(Finding { check: Check::Failure, yes: None, effects, said })
}
