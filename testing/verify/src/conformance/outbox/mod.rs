//! One suite that proves every outbox equal.
//!
//! A backend's test file is an [`OutboxBackend`] and one line,
//! `hapax_verify::outbox_conformance!(MyBackend);`.

use hapax_core::outbox::{Event, OutboxAdmin};

pub mod destinations;
pub mod lanes;
pub mod order;
pub mod parked;
pub mod retire;
mod scene;

/// What the suite needs from an outbox under test.
pub trait OutboxBackend: Sized + Send + Sync + 'static {
    /// The outbox.
    type Outbox: OutboxAdmin;

    /// An empty database of its own.
    fn create() -> impl Future<Output = Self> + Send;

    /// Opens the outbox, as another process would.
    fn open(&self) -> impl Future<Output = Self::Outbox> + Send;

    /// Emits these in one transaction, which commits.
    fn emit(&self, events: Vec<Event>) -> impl Future<Output = ()> + Send;

    /// Emits these in one transaction, which is rolled back.
    fn roll_back(&self, events: Vec<Event>) -> impl Future<Output = ()> + Send;

    /// Moves the clock of the database, for everyone who has it open.
    fn step_clock(&self, micros: i64) -> impl Future<Output = ()> + Send;

    /// Lets the next events go to another segment, where there are segments.
    fn turn_over(&self) -> impl Future<Output = ()> + Send;
}

/// Makes every case of the suite a test of this [`OutboxBackend`].
#[macro_export]
macro_rules! outbox_conformance {
    ($backend:ty) => {
        $crate::outbox_conformance_cases! { $backend;
            order {
                an_event_comes_as_it_was_emitted
                events_of_a_key_come_in_the_order_of_their_commits
                what_was_rolled_back_never_comes_and_is_in_nobodys_way
                concurrent_emitters_lose_and_swap_nothing
                a_read_keeps_to_its_limits
                an_event_larger_than_the_limit_comes_alone
                what_was_not_acknowledged_comes_again_with_the_same_id
                a_later_event_that_is_acknowledged_first_makes_nothing_final
                a_lane_that_comes_late_is_read_from_where_it_is_final
                a_ring_is_heard_by_whoever_asks_later
            }
            destinations {
                only_wanted_topics_come
                a_destination_begins_where_it_is_told
                destinations_do_not_disturb_each_other
                registering_again_changes_the_topics_and_keeps_the_progress
                a_removed_destination_is_unknown
                a_paused_destination_says_so
                the_lag_counts_what_is_wanted_and_not_final
            }
            lanes {
                one_relay_has_every_lane
                relays_share_the_lanes
                racing_relays_never_have_the_same_lane
                the_lanes_of_a_dead_relay_are_taken_over_under_higher_fences
                a_stale_relay_changes_nothing
                a_low_never_goes_back
                a_relay_that_leaves_is_not_waited_for
                a_lane_is_given_back_only_under_its_fence
            }
            parked {
                a_parked_event_lets_later_ones_go_on
                a_parked_tail_holds_its_key_and_no_other
                a_replay_brings_a_key_back_in_order
                a_replay_of_one_brings_those_before_it
                what_follows_a_replay_is_sent_after_it
                an_event_that_fails_again_is_parked_again
                a_parked_event_is_not_read_from_the_log_again
                forgotten_events_do_not_come_back
                a_stale_relay_parks_nothing
                parked_events_are_listed_as_they_are_in_pages
            }
            retire {
                what_is_final_for_every_destination_is_removed
                what_one_destination_still_needs_stays
                without_destinations_everything_stays
                a_parked_event_keeps_nothing_and_outlives_its_segment
                reading_goes_on_after_a_retirement
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! outbox_conformance_cases {
    ($backend:ty; $($group:ident { $($case:ident)* })*) => {
        mod outbox_conformance {
            use super::*;

            $(mod $group {
                use super::*;

                $(#[test]
                fn $case() {
                    $crate::conformance::run($crate::conformance::outbox::$group::$case::<$backend>());
                })*
            })*
        }
    };
}
