//! Clocks that are set, machines that are started again.

use std::time::Duration;

use hapax_client::journal::{Boot, Journal, Moment, PursuitAdmission, PursuitEnd, TakeUp};
use hapax_core::{Outcome, Timestamp};
use proptest::prelude::*;

use super::bench::{Bench, DEADLINE, YEAR, grant, granted, name, wish};

const LEASE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

async fn take_up(journal: &Journal) -> PursuitAdmission {
    let begun = journal.take_up(name("charge"), TakeUp::Pending).await.expect("answered");
    begun.expect("it is there")
}

async fn left(journal: &Journal) -> Duration {
    grant(take_up(journal).await).left
}

#[tokio::test]
async fn setting_the_wall_clock_changes_neither_lease_nor_deadline() {
    for set in [|wall: Timestamp| wall.plus(YEAR * 3), |wall: Timestamp| wall.minus(YEAR * 3)] {
        let bench = Bench::new();
        let journal = bench.journal();
        granted(&journal, wish("charge", "k-1")).await;
        bench.set_wall(set);
        assert_eq!(take_up(&journal).await, PursuitAdmission::Held { ends_in: LEASE });
        bench.pass(LEASE);
        assert_eq!(left(&journal).await, DEADLINE - LEASE);
    }
}

#[tokio::test]
async fn a_reboot_ends_every_lease_and_the_deadline_goes_on_by_the_wall_clock() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    bench.reboot(SECOND * 15);
    assert_eq!(left(&journal).await, DEADLINE - SECOND * 20);
}

#[tokio::test]
async fn after_a_reboot_time_never_runs_backwards() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    bench.reboot(SECOND * 15);
    bench.set_wall(|wall| wall.minus(YEAR * 3));
    assert_eq!(left(&journal).await, DEADLINE - SECOND * 5, "the time since the start has passed");
}

#[tokio::test]
async fn a_machine_that_was_off_for_long_leaves_nothing_of_the_deadline() {
    let bench = Bench::new();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    bench.reboot(YEAR);
    assert_eq!(left(&journal).await, Duration::ZERO);
}

#[tokio::test]
async fn with_a_wall_clock_alone_a_lease_from_the_future_is_over() {
    let bench = Bench::without_boot_clock();
    let journal = bench.journal();
    granted(&journal, wish("charge", "k-1")).await;
    assert_eq!(take_up(&journal).await, PursuitAdmission::Held { ends_in: LEASE });
    bench.set_wall(|wall| wall.minus(YEAR));
    assert_eq!(left(&journal).await, DEADLINE);
}

#[tokio::test]
async fn retention_counts_on_the_clock_that_nobody_sets() {
    let bench = Bench::new();
    let journal = bench.journal();
    let hold = granted(&journal, wish("charge", "k-1")).await.hold;
    journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await.expect("answered");
    let retention = bench.options().retention;
    bench.set_wall(|wall| wall.plus(YEAR));
    bench.pass(retention - SECOND);
    assert_eq!(journal.purge().await.expect("answered"), 0);
    bench.set_wall(|wall| wall.minus(YEAR * 2));
    bench.pass(SECOND);
    assert_eq!(journal.purge().await.expect("answered"), 1);
}

#[tokio::test]
async fn after_a_reboot_retention_counts_on_the_wall_clock_or_on_the_time_since() {
    for (wall_is_right, early) in [(true, SECOND * 10), (false, SECOND)] {
        let bench = Bench::new();
        let journal = bench.journal();
        let hold = granted(&journal, wish("charge", "k-1")).await.hold;
        journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await.expect("answered");
        bench.reboot(SECOND * 5);
        if !wall_is_right {
            bench.set_wall(|wall| wall.minus(YEAR));
        }
        let since_start = bench.now().boot.expect("a boot clock").since;
        let passed = if wall_is_right { since_start + SECOND * 5 } else { since_start };
        bench.pass(bench.options().retention - passed - early);
        assert_eq!(journal.purge().await.expect("answered"), 0);
        bench.pass(early);
        assert_eq!(journal.purge().await.expect("answered"), 1);
    }
}

#[tokio::test]
async fn with_a_wall_clock_alone_retention_counts_on_it() {
    let bench = Bench::without_boot_clock();
    let journal = bench.journal();
    let hold = granted(&journal, wish("charge", "k-1")).await.hold;
    journal.settle(&hold, 1, PursuitEnd::Done(Outcome::bare(201))).await.expect("answered");
    bench.pass(bench.options().retention - SECOND);
    assert_eq!(journal.purge().await.expect("answered"), 0);
    bench.pass(SECOND);
    assert_eq!(journal.purge().await.expect("answered"), 1);
}

fn moment() -> impl Strategy<Value = Moment> {
    let boot = proptest::option::of((0..3_u8, 0..u64::MAX / 2));
    (any::<i64>(), boot).prop_map(|(wall, boot)| Moment {
        wall: Timestamp::from_micros(wall),
        boot: boot.map(|(id, micros)| Boot { id: [id; 16], since: Duration::from_micros(micros) }),
    })
}

proptest! {
    #[test]
    fn in_one_boot_the_wall_clock_is_never_looked_at(
        (mut earlier, mut later) in (moment(), moment()), wall in any::<i64>(), span in 0..u64::MAX / 2,
    ) {
        let span = Duration::from_micros(span);
        let start = Boot { id: [7; 16], since: Duration::from_secs(1) };
        earlier.boot = Some(start);
        later.boot = Some(Boot { since: start.since + span, ..start });
        later.wall = Timestamp::from_micros(wall);
        prop_assert_eq!(later.since(earlier), span);
        prop_assert_eq!(earlier.since(later), Duration::ZERO);
    }

    #[test]
    fn another_boot_is_at_least_as_long_ago_as_this_one_began(
        (earlier, later) in (moment(), moment()),
    ) {
        if let (Some(then), Some(now)) = (earlier.boot, later.boot)
            && then.id != now.id
        {
            prop_assert!(later.since(earlier) >= now.since);
        }
    }
}
