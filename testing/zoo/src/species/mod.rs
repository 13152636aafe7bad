//! The species: a file each.

mod bad_key_500;
mod check_then_act;
mod claim_shared_by_connection;
mod client_date_in_key;
mod conflict_taken_for_failure;
mod conflict_without_retry_after;
mod cut_body_executed;
mod duplicate_row_visible;
mod empty_200_in_flight;
mod expiry_deletes_running_keys;
mod forgets_after_1000_keys;
mod forgets_before_its_time;
mod forwarded_for_in_key;
mod freed_when_answer_untaken;
mod frees_key_after_500;
#[cfg(feature = "ours")]
mod hapax_layer_memory;
#[cfg(feature = "ours")]
mod hapax_layer_sqlite;
mod honest;
mod honest_by_members;
mod honest_file;
mod honest_waiting;
mod http2_bypasses_check;
mod invalid_body_burns_key;
mod key_case_folded;
mod key_stored_after_effect;
mod key_truncated;
mod key_whitespace_removed;
mod keys_in_memory;
mod keys_per_instance;
mod lease_without_fence;
mod marker_without_result;
mod mismatch_by_length;
mod missing_key_accepted;
mod no_idempotency;
mod no_mismatch_check;
mod pipelines_at_once;
mod proxy_resends_when_slow;
mod reads_keys_from_a_replica;
mod reaper_frees_stuck_keys;
mod reordered_json_500;
mod replay_before_authentication;
mod replay_cut_at_64_kib;
mod replay_reordered;
mod replay_with_new_date;
mod replay_with_new_id;
mod replay_with_other_status;
mod revoked_token_replays;
mod rolled_back_after_disconnect;
mod route_blind;
mod several_keys_accepted;
mod stores_500;
mod stores_cookie;
mod stores_hop_by_hop;
mod stuck_after_disconnect;
mod stuck_after_kill;
mod tenant_blind;
mod unique_violation_500;

use std::sync::Arc;

use crate::conduct::Conduct;

/// All of them: the broken ones, by what is wrong with them, then the correct ones.
pub const SPECIES: &[Species] = &[
    no_idempotency::SPECIES,
    check_then_act::SPECIES,
    key_stored_after_effect::SPECIES,
    keys_per_instance::SPECIES,
    keys_in_memory::SPECIES,
    stuck_after_kill::SPECIES,
    no_mismatch_check::SPECIES,
    mismatch_by_length::SPECIES,
    key_truncated::SPECIES,
    key_case_folded::SPECIES,
    key_whitespace_removed::SPECIES,
    several_keys_accepted::SPECIES,
    missing_key_accepted::SPECIES,
    bad_key_500::SPECIES,
    tenant_blind::SPECIES,
    route_blind::SPECIES,
    client_date_in_key::SPECIES,
    forwarded_for_in_key::SPECIES,
    replay_before_authentication::SPECIES,
    revoked_token_replays::SPECIES,
    stores_500::SPECIES,
    frees_key_after_500::SPECIES,
    reaper_frees_stuck_keys::SPECIES,
    invalid_body_burns_key::SPECIES,
    stores_cookie::SPECIES,
    stores_hop_by_hop::SPECIES,
    unique_violation_500::SPECIES,
    empty_200_in_flight::SPECIES,
    conflict_without_retry_after::SPECIES,
    stuck_after_disconnect::SPECIES,
    rolled_back_after_disconnect::SPECIES,
    cut_body_executed::SPECIES,
    replay_reordered::SPECIES,
    replay_with_new_id::SPECIES,
    replay_with_new_date::SPECIES,
    replay_with_other_status::SPECIES,
    replay_cut_at_64_kib::SPECIES,
    marker_without_result::SPECIES,
    expiry_deletes_running_keys::SPECIES,
    lease_without_fence::SPECIES,
    forgets_before_its_time::SPECIES,
    forgets_after_1000_keys::SPECIES,
    reads_keys_from_a_replica::SPECIES,
    http2_bypasses_check::SPECIES,
    claim_shared_by_connection::SPECIES,
    pipelines_at_once::SPECIES,
    reordered_json_500::SPECIES,
    proxy_resends_when_slow::SPECIES,
    conflict_taken_for_failure::SPECIES,
    duplicate_row_visible::SPECIES,
    freed_when_answer_untaken::SPECIES,
    honest::SPECIES,
    honest_waiting::SPECIES,
    honest_by_members::SPECIES,
    honest_file::SPECIES,
    #[cfg(feature = "ours")]
    hapax_layer_memory::SPECIES,
    #[cfg(feature = "ours")]
    hapax_layer_sqlite::SPECIES,
];

/// A server that can be started.
#[derive(Debug)]
pub struct Species {
    /// What it is called; broken ones after their fault.
    pub name: &'static str,
    /// What is wrong with it, if anything is.
    pub fault: Option<PlantedFault>,
    /// Whether it is to be served with a file, killed and started again: a broken one shows its fault
    /// only then, and a correct one keeps its promise. Others may lose their keys with their process.
    pub is_about_restarts: bool,
    pub(crate) conduct: fn() -> Arc<dyn Conduct>,
}

/// What is wrong with a species.
#[derive(Debug)]
pub struct PlantedFault {
    /// It does this.
    pub sentence: &'static str,
    /// The probes that are meant to find it, the first before the others.
    pub found_by: &'static [&'static str],
}

impl Species {
    const fn broken(
        name: &'static str,
        sentence: &'static str,
        found_by: &'static [&'static str],
        conduct: fn() -> Arc<dyn Conduct>,
    ) -> Self {
        let fault = Some(PlantedFault { sentence, found_by });
        Self { name, fault, is_about_restarts: false, conduct }
    }

    const fn correct(name: &'static str, conduct: fn() -> Arc<dyn Conduct>) -> Self {
        Self { name, fault: None, is_about_restarts: false, conduct }
    }

    const fn about_restarts(self) -> Self {
        Self { is_about_restarts: true, ..self }
    }

    /// Whether something is wrong with it.
    pub const fn is_broken(&self) -> bool {
        self.fault.is_some()
    }

    /// The species of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        SPECIES.iter().find(|species| species.name == name)
    }
}
