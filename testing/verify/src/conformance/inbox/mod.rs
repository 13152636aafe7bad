//! One suite that proves every inbox equal.
//!
//! A backend's test file is an [`InboxBackend`] and one line,
//! `hapax_verify::inbox_conformance!(MyBackend);`.

use hapax_core::{
    Event,
    inbox::{Inbox, InboxAdmin},
};

pub mod admin;
pub mod batches;
mod encrypted;
pub mod letters;
pub mod places;
pub mod records;
pub mod retention;
mod scene;
pub mod turns;

pub use self::encrypted::EncryptedMessages;

/// What the suite needs from an inbox under test.
pub trait InboxBackend: Sized + Send + Sync + 'static {
    /// How many bytes more a payload of the suite takes where it is kept.
    const KEPT_BYTES_MORE: u64 = 0;

    /// The inbox.
    type Inbox: Inbox;

    /// What people look after it with.
    type Admin: InboxAdmin + 'static;

    /// A database of its own, with a table for effects that is empty.
    fn create() -> impl Future<Output = Self> + Send;

    /// Opens the inbox, as another process would. It waits for others as little as it can.
    fn open(&self) -> impl Future<Output = Self::Inbox> + Send;

    /// Opens what people look after it with, as another process would.
    fn admin(&self) -> impl Future<Output = Self::Admin> + Send;

    /// Has an effect with this name, in this transaction.
    fn act(
        transaction: &mut <Self::Inbox as Inbox>::Transaction,
        effect: &str,
    ) -> impl Future<Output = ()> + Send;

    /// Emits an event in this transaction.
    fn emit(transaction: &mut <Self::Inbox as Inbox>::Transaction, event: Event);

    /// The names of the effects that were committed, in any order.
    fn effects(&self) -> impl Future<Output = Vec<String>> + Send;

    /// How many events were committed.
    fn events(&self) -> impl Future<Output = i64> + Send;

    /// The message ids and reasons of the dead letters, in order of the ids.
    fn dead(&self) -> impl Future<Output = Vec<(String, String)>> + Send;

    /// Moves the clock of the database, for everyone who has it open.
    fn step_clock(&self, micros: i64) -> impl Future<Output = ()> + Send;
}

/// Makes every case of the suite a test of this [`InboxBackend`].
#[macro_export]
macro_rules! inbox_conformance {
    ($backend:ty) => {
        $crate::inbox_conformance_cases! { $backend;
            records {
                the_first_delivery_is_acted_on_and_later_ones_are_not
                what_was_taken_back_is_the_first_again
                a_transaction_that_is_dropped_leaves_nothing
                another_consumer_has_messages_of_its_own
                a_consumer_that_comes_back_is_the_same
                other_content_under_a_used_name_is_a_conflict
                while_one_delivery_is_acted_on_another_is_busy
                of_many_deliveries_at_once_one_is_acted_on
                messages_of_different_names_do_not_disturb_each_other
                a_stored_failure_answers_every_later_delivery
                events_are_published_with_the_effect_or_not_at_all
            }
            retention {
                what_is_past_its_retention_is_the_first_again
                a_failure_past_its_retention_may_be_tried_again
                what_is_past_its_retention_is_forgotten_and_nothing_else
                forgetting_keeps_to_its_limit
                a_new_retention_counts_for_what_was_there_before
                nothing_is_forgotten_beyond_where_the_clock_is_trusted
            }
            places {
                a_partition_goes_on_where_it_was_left
                what_lies_behind_the_place_is_not_acted_on_again
                what_was_taken_back_does_not_move_the_place
                whoever_lost_its_partition_can_finish_nothing
                partitions_and_consumers_have_places_of_their_own
            }
            turns {
                a_key_comes_to_the_version_of_what_was_acted_on
                what_was_passed_over_does_not_move_its_key
                while_one_message_of_a_key_is_acted_on_another_is_busy
                a_held_message_is_final_for_the_broker_and_comes_when_its_turn_is
                a_held_message_comes_as_it_was
                a_held_message_that_was_taken_back_is_still_held
                a_held_message_is_acted_on_once
                a_message_held_too_long_is_asked_for_out_of_turn
                only_the_lowest_of_a_key_is_asked_for
                a_failure_moves_its_key_on
                what_is_held_is_not_forgotten
            }
            batches {
                several_messages_are_acted_on_in_one_transaction
                a_batch_that_was_taken_back_is_the_first_again
                a_batch_that_is_dropped_leaves_nothing
                a_batch_with_a_message_that_was_acted_on_is_not_entered
                a_batch_with_one_message_twice_is_not_entered
                a_batch_with_a_message_somebody_is_at_is_not_entered
                messages_of_two_consumers_are_not_taken_together
                of_many_batches_at_once_each_message_is_acted_on_once
                events_of_a_batch_are_published_with_all_of_it
                messages_of_one_transaction_end_alike
                messages_of_a_partition_move_its_place_together
                messages_of_two_partitions_are_not_taken_together
                messages_in_turn_are_not_taken_together
            }
            letters {
                failed_attempts_are_counted_one_by_one
                a_letter_is_kept_once_however_often_it_is_told
                a_dead_message_is_kept_with_its_record
                two_contents_of_one_name_are_two_letters
            }
            admin {
                consumers_are_told_with_how_much_they_have
                a_message_that_is_done_is_not_being_tried_again
                a_held_message_may_be_one_that_is_tried_again
                held_messages_are_told_by_key_with_the_gap_before_them
                partitions_are_told_with_how_far_they_have_come
                letters_come_by_pages_with_their_payload_on_demand
                a_letter_tells_what_the_next_delivery_meets
                a_discarded_letter_leaves_its_message_failed
                a_forgiven_message_is_the_first_again
                a_letter_is_changed_only_while_it_is_the_one_that_was_seen
                of_many_who_forgive_a_letter_at_once_one_does
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! inbox_conformance_cases {
    ($backend:ty; $($group:ident { $($case:ident)* })*) => {
        mod inbox_conformance {
            use super::*;

            $(mod $group {
                use super::*;

                $(#[test]
                fn $case() {
                    $crate::conformance::run($crate::conformance::inbox::$group::$case::<$backend>());
                })*
            })*
        }
    };
}
