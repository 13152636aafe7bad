//! One suite that proves every store equal.
//!
//! A backend's test file is a [`Backend`] and one line, `hapax_verify::conformance!(MyBackend);`. A
//! bug found in one store becomes a case here, for all of them.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "the cases are tests: what they did not expect ends them"
)]

use hapax_core::{Faults, OperationId, Store};

pub mod claim;
pub mod concurrency;
pub mod damage;
pub mod data_keys;
pub mod decisions;
mod encrypted;
pub mod faults;
pub mod inbox;
pub mod incarnation;
pub mod lease;
pub mod listing;
pub mod notes;
pub mod outbox;
pub mod retention;
mod scene;
pub mod settle;
pub mod steps;

pub use self::encrypted::Encrypted;

/// What the suite needs from a store under test.
pub trait Backend: Sized + Send + Sync + 'static {
    /// The store.
    type Store: Store;

    /// The places of [`Faults`] this store passes on its way to and from storage.
    const PLACES: &'static [&'static str];

    /// An empty database of its own.
    fn create() -> impl Future<Output = Self> + Send;

    /// Opens the database, as another process would.
    fn open(&self, faults: Faults) -> impl Future<Output = Self::Store> + Send;

    /// Moves the clock of the database, for everyone who has it open.
    fn step_clock(&self, micros: i64) -> impl Future<Output = ()> + Send;

    /// Changes what is stored behind the store's back.
    fn damage(&self, id: OperationId, damage: Damage) -> impl Future<Output = ()> + Send;
}

/// A way in which stored bytes go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// One bit of the stored body is flipped.
    FlippedBodyBit,
    /// The outcome of a finished record is gone.
    LostOutcome,
    /// The row's state is a number no version ever wrote.
    UnknownState,
    /// The row's format is one higher than this version's.
    NewerRow,
    /// The outcome head's format is one higher than this version's.
    NewerOutcome,
    /// One bit of the result of the only step is flipped.
    FlippedStepBit,
    /// The format of the only step is one higher than this version's.
    NewerStep,
}

/// Runs one case to its end on threads of its own.
pub fn run(case: impl Future<Output = ()>) {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let runtime = threads.worker_threads(2).enable_all().build();
    runtime.expect("the test process must be able to start threads").block_on(case);
}

/// Makes every case of the suite a test of this [`Backend`].
#[macro_export]
macro_rules! conformance {
    ($backend:ty) => {
        $crate::conformance_cases! { $backend;
            decisions {
                an_absent_key_executes
                an_expired_record_executes_as_new
                a_pending_operation_is_busy
                a_live_lease_is_busy
                a_lease_that_is_over_is_followed_or_given_up
                a_completed_operation_is_replayed
                a_failed_operation_is_replayed
                an_operation_in_doubt_is_followed_or_stays_so
                a_released_operation_executes_again
                a_key_with_a_tombstone_is_gone
                a_tombstone_that_is_over_executes_as_new
            }
            claim {
                a_first_claim_is_stored_with_the_instant_of_its_write
                a_queued_claim_keeps_its_request_for_the_worker
                a_claim_that_is_not_won_is_told_what_is_stored
                a_claim_over_what_was_removed_finds_nothing
                a_claim_over_an_outdated_stamp_is_not_won
                a_new_life_takes_everything_from_its_claim
                a_takeover_continues_the_same_life
                a_takeover_may_bring_its_own_request
                a_key_belongs_to_its_tenant_and_scope
                names_come_back_as_they_are
                owners_come_back_as_they_are
                two_handles_see_each_others_writes_at_once
                every_handle_has_the_same_salt
                a_mixed_batch_is_answered_in_order
                the_largest_batches_are_answered_item_by_item
                a_load_answers_in_order
                an_empty_batch_is_answered_with_nothing
                a_request_comes_back_byte_for_byte
                a_first_claim_that_is_withdrawn_leaves_nothing
            }
            settle {
                every_settlement_is_stored
                an_outcome_comes_back_byte_for_byte
                a_stale_owner_changes_nothing
                a_finished_record_never_changes
                a_late_owner_nobody_followed_ends_the_doubt
                a_late_owner_that_was_followed_has_no_say
                an_owner_that_slept_through_a_whole_life_is_refused
                an_onlooker_settles_only_what_it_saw
                a_person_resolves_a_doubt
                settling_what_is_not_there_is_lost
                an_outcome_is_kept_at_least_as_long_as_asked
                a_request_is_dropped_when_nobody_needs_it
            }
            lease {
                a_renewal_counts_the_lease_anew
                a_late_owner_nobody_followed_renews
                nobody_renews_what_it_does_not_run
                a_renewed_lease_defeats_an_onlooker
                only_what_is_past_its_time_is_overdue
                overdue_records_come_in_bounded_calls
                leases_follow_the_stores_clock
                records_from_before_a_clock_step_are_found
                a_lease_given_by_a_clock_that_was_ahead_is_overdue
                a_sweeper_does_what_the_recovery_says
            }
            retention {
                finished_records_are_removed_past_retention
                what_did_nothing_is_forgotten_after_a_lease
                nothing_in_flight_or_in_doubt_expires
                a_tombstone_outlives_its_record
                a_record_past_its_tombstone_is_removed_at_once
                a_pending_operation_nobody_came_for_fails
                a_purge_is_bounded
                retention_from_completion_is_counted_from_there
                expiry_follows_the_stores_clock
                nothing_is_purged_beyond_where_the_clock_is_trusted
                what_is_kept_of_the_clock_is_there_for_every_handle
            }
            incarnation {
                a_new_database_has_no_past
                what_is_kept_about_the_past_comes_back_as_it_is
                the_past_is_written_only_over_what_was_read
            }
            damage {
                a_flipped_bit_is_not_served
                a_lost_outcome_is_not_served
                an_unknown_state_is_not_guessed
                a_newer_row_is_not_read
                a_newer_outcome_is_not_read
                a_row_that_cannot_be_understood_is_not_purged
                an_outcome_dropped_after_it_expired_reads_as_buried
            }
            faults {
                answers_agree_with_what_is_stored_wherever_it_fails
            }
            concurrency {
                many_duplicates_of_many_keys_have_one_winner_each
                racing_takeovers_have_one_winner
                a_release_and_a_completion_exclude_each_other
                a_doubt_never_hides_a_completion
                a_renewal_and_an_onlooker_exclude_each_other
                of_two_answers_at_once_one_is_stored
                a_purge_never_removes_a_new_life
            }
            listing {
                pages_hold_every_record_once
                filters_hold_by_themselves_and_together
                a_filtered_page_starts_after_the_id_it_names
                an_empty_database_lists_nothing
                what_cannot_be_read_does_not_hide_the_others
            }
            notes {
                a_note_comes_back_as_it_was_written
                the_latest_notes_come_oldest_first
                notes_belong_to_their_operation
                notes_outlive_their_record
                old_notes_are_removed_in_bounded_calls
            }
            steps {
                steps_come_back_in_order_as_they_were_kept
                only_the_running_owner_keeps_steps
                a_step_that_is_kept_stays_as_it_is
                whoever_takes_over_finds_the_steps
                a_new_life_starts_without_steps
                steps_belong_to_their_operation
                the_largest_step_comes_back_byte_for_byte
                finished_steps_outlive_the_end_of_their_attempt
                steps_go_with_their_record
                a_flipped_bit_of_a_step_is_not_served
                a_newer_step_is_not_read
                a_takeover_and_a_step_exclude_each_other
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! conformance_cases {
    ($backend:ty; $($group:ident { $($case:ident)* })*) => {
        mod conformance {
            use super::*;

            $(mod $group {
                use super::*;

                $(#[test]
                fn $case() {
                    $crate::conformance::run($crate::conformance::$group::$case::<$backend>());
                })*
            })*
        }
    };
}
