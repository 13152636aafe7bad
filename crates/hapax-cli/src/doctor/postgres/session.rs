//! The session that looks.

/// Nothing can be written by it, nothing waits long for a lock, and names mean what they mean in
/// PostgreSQL, whatever others made in the schemas of a session's path.
pub(super) const GUARD: &str = "
SET default_transaction_read_only = on;
SET search_path = pg_catalog, pg_temp;
SET statement_timeout = '30s';
SET lock_timeout = '2s';
SET idle_in_transaction_session_timeout = '30s';
SET max_parallel_workers_per_gather = 0;
";
