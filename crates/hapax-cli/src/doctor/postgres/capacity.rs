//! Whether there is room: connections, and what the log keeps.

use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};
use crate::units::size;

const LOOK: &str = "
SELECT current_setting('max_connections')::int8 - current_setting('superuser_reserved_connections')::int8,
       (SELECT count(*) FROM pg_stat_activity WHERE datid IS NOT NULL OR backend_type = 'client backend'),
       (SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hapax'),
       pg_database_size(current_database()),
       coalesce(pg_total_relation_size(to_regclass('hapax.operations')), 0),
       current_setting('max_slot_wal_keep_size')
";

/// Slots, and how much of the log each keeps.
const SLOTS: &str = "
SELECT slot_name::text, active, coalesce(wal_status, 'unknown'),
       coalesce(CASE WHEN pg_is_in_recovery() THEN 0
                ELSE pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) END, 0)::int8
FROM pg_replication_slots ORDER BY slot_name
";

/// How much of the log a slot may keep before somebody should know.
const KEPT_BYTES: u64 = 1 << 30;

struct CapacityFacts {
    /// What ordinary roles may have.
    connections_max: i64,
    connections: i64,
    /// Those of Hapax among them.
    own_connections: i64,
    /// What all gateways together want.
    wanted: i64,
    database_bytes: i64,
    operations_bytes: i64,
    slot_limit: String,
    slots: Vec<FoundSlot>,
}

struct FoundSlot {
    name: String,
    is_active: bool,
    wal_status: String,
    kept_bytes: i64,
}

const CHECKS: &[fn(&CapacityFacts) -> Diagnosis] = &[connections, database, slots];

pub(super) async fn examine(client: &Client, wanted: u32) -> Vec<Diagnosis> {
    judged("capacity", gather(client, i64::from(wanted)).await, CHECKS)
}

async fn gather(client: &Client, wanted: i64) -> Result<CapacityFacts, Error> {
    let row = client.query_one(LOOK, &[]).await?;
    let slots = client.query(SLOTS, &[]).await?;
    let slots = slots.iter().map(|row| {
        let (name, is_active, wal_status) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(FoundSlot { name, is_active, wal_status, kept_bytes: row.try_get(3)? })
    });
    Ok(CapacityFacts {
        connections_max: row.try_get(0)?,
        connections: row.try_get(1)?,
        own_connections: row.try_get(2)?,
        wanted,
        database_bytes: row.try_get(3)?,
        operations_bytes: row.try_get(4)?,
        slot_limit: row.try_get(5)?,
        slots: slots.collect::<Result<_, Error>>()?,
    })
}

fn connections(facts: &CapacityFacts) -> Diagnosis {
    let CapacityFacts { connections_max, connections, own_connections, wanted, .. } = facts;
    let found = Diagnosis::new(
        "connections",
        format!(
            "{connections} of {connections_max} in use, {own_connections} by Hapax, which wants {wanted}"
        ),
    );
    let others = connections - own_connections;
    if connections_max - others >= *wanted {
        return found;
    }
    found.danger(
        "gateways cannot connect, or not again after a restart: requests with keys are refused with 503",
        "raise max_connections and restart the server, or have other services use fewer",
    )
}

fn database(facts: &CapacityFacts) -> Diagnosis {
    let bytes = |bytes: i64| size(u64::try_from(bytes).unwrap_or(0));
    let (all, ours) = (bytes(facts.database_bytes), bytes(facts.operations_bytes));
    Diagnosis::new(
        "size",
        format!(
            "the database has {all}, operations {ours}; a server does not tell how much its disk has left"
        ),
    )
}

fn slots(facts: &CapacityFacts) -> Diagnosis {
    const NAME: &str = "slots";
    let kept = |slot: &FoundSlot| u64::try_from(slot.kept_bytes).unwrap_or(0);
    let words = |slot: &FoundSlot| {
        let state = if slot.is_active { "in use" } else { "not in use" };
        format!("{} ({state}, keeps {})", slot.name, size(kept(slot)))
    };
    if let Some(lost) = facts.slots.iter().find(|slot| slot.wal_status == "lost") {
        return Diagnosis::new(NAME, format!("{} has lost its place", lost.name)).warning(
            "whoever reads by it has to begin anew",
            format!("SELECT pg_drop_replication_slot('{}');", lost.name),
        );
    }
    let heavy = facts.slots.iter().find(|slot| !slot.is_active && kept(slot) >= KEPT_BYTES);
    if let Some(heavy) = heavy {
        return Diagnosis::new(NAME, words(heavy)).warning(
            "the log it keeps fills the disk, and a server without room stops",
            format!("start who reads it, or SELECT pg_drop_replication_slot('{}');", heavy.name),
        );
    }
    if !facts.slots.is_empty() && facts.slot_limit == "-1" {
        return Diagnosis::new(NAME, "max_slot_wal_keep_size is -1").note(
            "a slot that nobody reads keeps the log until the disk is full",
            "ALTER SYSTEM SET max_slot_wal_keep_size = '4GB'; SELECT pg_reload_conf();",
        );
    }
    let all = facts.slots.iter().map(words).collect::<Vec<_>>().join(", ");
    Diagnosis::new(NAME, if all.is_empty() { "none".to_owned() } else { all })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> CapacityFacts {
        CapacityFacts {
            connections_max: 97,
            connections: 40,
            own_connections: 10,
            wanted: 10,
            database_bytes: 1 << 20,
            operations_bytes: 1 << 19,
            slot_limit: "4GB".to_owned(),
            slots: Vec::new(),
        }
    }

    #[test]
    fn connections_of_our_own_are_not_counted_twice() {
        assert_eq!(connections(&facts()).severity(), None);
        let full = CapacityFacts { connections: 97, ..facts() };
        assert_eq!(connections(&full).severity(), None);
        let fuller = CapacityFacts { wanted: 11, ..full };
        assert_eq!(connections(&fuller).severity(), Some(Severity::Danger));
    }

    #[test]
    fn a_slot_that_nobody_reads_is_told_once_it_keeps_much() {
        let slot = |kept_bytes, wal_status: &str| {
            let slot = FoundSlot {
                name: "s".to_owned(),
                is_active: false,
                wal_status: wal_status.to_owned(),
                kept_bytes,
            };
            slots(&CapacityFacts { slots: vec![slot], ..facts() }).severity()
        };
        assert_eq!(slot(1 << 20, "reserved"), None);
        assert_eq!(slot(1 << 31, "extended"), Some(Severity::Warning));
        assert_eq!(slot(0, "lost"), Some(Severity::Warning));
    }
}
