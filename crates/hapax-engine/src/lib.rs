//! Drives a Hapax store: group commit, lease renewal, waiters, cache, sweeper, purger.
