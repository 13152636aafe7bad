//! Killed at every place that writes, and at any other moment.

use std::{
    collections::BTreeMap,
    env,
    io::{self, Write},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use tokio::{runtime, time::sleep};

use crate::{shop::Answer, world::World};

/// Right before and right after each write, in the order a payment passes them. Commits of the store
/// are, in turn: the claim, the three kept steps and the outcome.
const PLACES: [(&str, u64); 20] = [
    ("commit.send", 1),
    ("commit.answer", 1),
    ("charge.asking", 1),
    ("charge.answered", 1),
    ("commit.send", 2),
    ("commit.answer", 2),
    ("record.begun", 1),
    ("record.entered", 1),
    ("record.committed", 1),
    ("commit.send", 3),
    ("commit.answer", 3),
    ("mail.noted", 1),
    ("mail.alone", 1),
    ("mail.sent", 1),
    ("mail.logged", 1),
    ("commit.send", 4),
    ("commit.answer", 4),
    ("commit.send", 5),
    ("commit.answer", 5),
    ("answering", 1),
];
/// Where whoever goes on is killed in turn, if it comes there.
const AGAIN: [(&str, u64); 6] = [
    ("overdue.answer", 1),
    ("commit.send", 1),
    ("commit.answer", 1),
    ("steps.answer", 1),
    ("commit.send", 2),
    ("mail.alone", 1),
];

/// Payments killed at each place once, and killed there and then again.
const RUNS_ONCE: usize = 5;
const RUNS_TWICE: usize = 2;
/// Payments killed at two moments that have nothing to do with what is going on.
const RUNS_RANDOM: usize = 25;
/// Until when after the request such a moment may be.
const RANDOM_MS_MAX: u64 = 150;
const KILLS_MIN: usize = 200;
/// What is drawn from, unless `PAYMENTS_SEED` says otherwise.
const SEED: u64 = 5;
const LANES: usize = 4;

#[derive(Debug, Clone, Copy)]
enum End {
    At { place: &'static str, nth: u64 },
    After(Duration),
}

#[test]
fn two_hundred_deaths_leave_one_of_everything() {
    let seed = env::var("PAYMENTS_SEED").map_or(SEED, |seed| seed.parse().unwrap());
    let (plan, next) = (plan(seed), AtomicUsize::new(0));
    let kills = Mutex::new(BTreeMap::<String, usize>::new());
    let lane = || {
        let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let world = World::new().await;
            while let Some((number, ends)) = take(&plan, &next) {
                for place in payment(&world, &format!("order-{number}"), ends).await {
                    *kills.lock().unwrap().entry(place).or_default() += 1;
                }
            }
        });
    };
    thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
    let kills = kills.into_inner().unwrap();
    let all: usize = kills.values().sum();
    let told = format!("seed {seed}: {all} kills of {} payments: {kills:?}", plan.len());
    // Told also when the test passes.
    writeln!(io::stdout(), "{told}").unwrap();
    for (place, nth) in PLACES {
        let here = kills.get(&format!("{place}:{nth}")).copied().unwrap_or_default();
        assert!(here >= RUNS_ONCE + RUNS_TWICE, "only {here} died at {place}:{nth}");
    }
    assert!(all >= KILLS_MIN, "only {all} died");
}

/// How each payment's processes end, one after the other.
fn plan(seed: u64) -> Vec<Vec<End>> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut plan = Vec::new();
    let at = |(place, nth)| End::At { place, nth };
    for place in PLACES {
        plan.extend((0..RUNS_ONCE).map(|_| vec![at(place)]));
        plan.extend((0..RUNS_TWICE).map(|_| vec![at(place), at(AGAIN[dice.usize(..AGAIN.len())])]));
    }
    let mut moment = || End::After(Duration::from_millis(dice.u64(..RANDOM_MS_MAX)));
    plan.extend((0..RUNS_RANDOM).map(|_| vec![moment(), moment()]));
    plan
}

fn take<'a>(plan: &'a [Vec<End>], next: &AtomicUsize) -> Option<(usize, &'a [End])> {
    let number = next.fetch_add(1, Relaxed);
    plan.get(number).map(|ends| (number, &ends[..]))
}

/// Kills as planned, restarts, retries and checks. Tells where somebody died.
async fn payment(world: &World, order: &str, ends: &[End]) -> Vec<String> {
    let (mut died, mut heard) = (Vec::new(), Vec::new());
    for end in ends {
        let (place, answer) = match *end {
            End::At { place, nth } => die_at(world, order, place, nth).await,
            End::After(delay) => (Some("any moment".to_owned()), kill(world, order, delay).await),
        };
        died.extend(place);
        heard.extend(answer);
    }
    let last = world.retry_and_check(order).await;
    for answer in heard {
        assert_eq!(answer.body, last.body, "{order} was answered differently before: {ends:?}");
    }
    died
}

/// Retries against a process that dies at a place, unless it never comes there.
async fn die_at(
    world: &World,
    order: &str,
    place: &str,
    nth: u64,
) -> (Option<String>, Option<Answer>) {
    let doomed = world.doomed(place, nth);
    match world.shop.insist(&doomed.address, order).await {
        Ok(answer) => (None, Some(answer)),
        Err(_) => {
            doomed.die().await;
            (Some(format!("{place}:{nth}")), None)
        }
    }
}

/// Retries against a process that is killed after a while.
async fn kill(world: &World, order: &str, delay: Duration) -> Option<Answer> {
    let service = world.service();
    let address = service.address.clone();
    let asking = world.shop.insist(&address, order);
    let killing = async {
        sleep(delay).await;
        service.kill();
    };
    tokio::join!(asking, killing).0.ok()
}
