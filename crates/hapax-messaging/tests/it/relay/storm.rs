//! Everything at once, by chance: a place and an outbox that fail, relays that die, events that are
//! parked and replayed.

use std::time::Duration;

use hapax_core::outbox::{OutboxAdmin as _, Selection};
use hapax_messaging::relay::{OnFailure, Relay};
use tokio::{sync::watch, time::sleep};

use super::{
    moody::Moody,
    place::Place,
    scene::{NAME, destination, emit, impatient, lag, outbox, parked},
};

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_or_swapped_whatever_fails() {
    for seed in 0..60 {
        fastrand::seed(seed);
        weather_a_storm(seed).await;
    }
}

async fn weather_a_storm(seed: u64) {
    let (outbox, place) = (outbox(), Place::new());
    place.be_flaky(Some((8, 10)));
    let options = impatient(OnFailure::ParkTail);
    let mut emitted = 0;
    let mut alive = Vec::new();
    for round in 0..100 {
        for _ in 0..fastrand::usize(0..20) {
            emit(&outbox, &[(&format!("k{}", fastrand::u32(0..10)), &format!("{round}"))]);
            emitted += 1;
        }
        place.take_so_long(Duration::from_millis(fastrand::u64(0..50)));
        match fastrand::u32(0..10) {
            0 | 1 if alive.len() < 3 => {
                let (stop, stopped) = watch::channel(false);
                let relay = Relay::new(Moody(outbox.clone()), destination(), place.clone());
                alive.push((stop, tokio::spawn(relay.options(options).run(stopped))));
            }
            2 if !alive.is_empty() => {
                alive.swap_remove(fastrand::usize(0..alive.len())).1.abort();
            }
            3 if !alive.is_empty() => {
                let (stop, task) = alive.swap_remove(fastrand::usize(0..alive.len()));
                stop.send(true).unwrap();
                task.await.unwrap().unwrap();
            }
            4 => drop(outbox.replay(NAME, Selection::All).await.unwrap()),
            _ => sleep(Duration::from_millis(fastrand::u64(0..3000))).await,
        }
    }
    alive.into_iter().for_each(|(_, task)| task.abort());
    place.be_flaky(None);
    let last = Relay::new(Moody(outbox.clone()), destination(), place.clone());
    let running = last.options(options).spawn();
    while lag(&outbox).await > 0 || !parked(&outbox).await.is_empty() {
        outbox.replay(NAME, Selection::All).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    running.stop().await.unwrap();
    assert_eq!(place.distinct(), emitted, "seed {seed}");
    place.assert_in_order();
}
