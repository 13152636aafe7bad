//! How relays share lanes.

use std::time::Duration;

use hapax_core::{
    Owner, Timestamp,
    outbox::{Lane, LanePlan, ServingRelay, plan, share},
};
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_micros(1_000_000);

fn alive(owner: i64) -> ServingRelay {
    ServingRelay { owner: Owner(owner), until: NOW.plus(Duration::from_micros(1)) }
}

fn dead(owner: i64) -> ServingRelay {
    ServingRelay { owner: Owner(owner), until: NOW }
}

fn owned(owner: impl Fn(usize) -> Option<i64>) -> Vec<(Lane, Option<Owner>)> {
    Lane::all().map(|lane| (lane, owner(lane.index()).map(Owner))).collect()
}

#[test]
fn shares_are_fair_and_cover_every_lane() {
    for relays in 1..=70 {
        assert!(share(relays) * relays >= 64, "{relays}");
        assert!((share(relays) - 1) * relays < 64, "{relays}");
    }
    assert_eq!(share(0), 64);
}

#[test]
fn free_lanes_and_those_of_the_dead_are_taken_up_to_the_share() {
    let lanes = owned(|at| if at < 10 { Some(2) } else { None });
    let all: Vec<_> = Lane::all().collect();
    assert_eq!(plan(NOW, Owner(1), &[dead(2)], &lanes), LanePlan { take: all, give_back: 0 });
    let planned = plan(NOW, Owner(1), &[alive(2)], &lanes);
    assert_eq!((planned.take.len(), planned.give_back), (32, 0));
    assert!(planned.take.iter().all(|lane| lane.index() >= 10), "nothing of the living");
}

#[test]
fn what_is_beyond_the_share_is_given_back() {
    let lanes = owned(|_| Some(1));
    let planned = plan(NOW, Owner(1), &[alive(1), alive(2), dead(3)], &lanes);
    assert_eq!(planned, LanePlan { take: Vec::new(), give_back: 32 });
}

#[test]
fn a_relay_that_forgot_to_renew_is_alive_because_it_asks() {
    let lanes = owned(|_| Some(1));
    assert_eq!(plan(NOW, Owner(1), &[dead(1)], &lanes), LanePlan::default());
}

proptest! {
    #[test]
    fn as_long_as_relays_ask_every_lane_finds_one(
        owners in prop::collection::vec(prop::option::of(0_i64..6), 64),
        living in prop::collection::btree_set(0_i64..6, 1..6),
    ) {
        let relays: Vec<_> = (0..6)
            .map(|owner| if living.contains(&owner) { alive(owner) } else { dead(owner) })
            .collect();
        let mut lanes = owned(|at| owners[at]);
        // Twice round: what is given back in the first is taken in the second.
        for _ in 0..2 {
            for me in &living {
                let planned = plan(NOW, Owner(*me), &relays, &lanes);
                for lane in &planned.take {
                    lanes[lane.index()].1 = Some(Owner(*me));
                }
                let mine = lanes.iter_mut().filter(|(_, owner)| *owner == Some(Owner(*me)));
                mine.take(planned.give_back).for_each(|(_, owner)| *owner = None);
            }
        }
        for me in &living {
            let mine = lanes.iter().filter(|(_, owner)| *owner == Some(Owner(*me))).count();
            prop_assert!(mine <= share(living.len()));
        }
        let served = |owner: &Option<Owner>| owner.is_some_and(|owner| living.contains(&owner.0));
        prop_assert!(lanes.iter().all(|(_, owner)| served(owner)));
    }
}
