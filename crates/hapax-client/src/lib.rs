//! An HTTP client that finishes the job: one key per operation, bounded retries, and a journal that
//! survives a restart.

pub mod journal;
