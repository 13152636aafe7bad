//! Whether what was acknowledged is still there after a crash, or after a failover.

use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};

const LOOK: &str = "
SELECT current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
       current_setting('data_checksums'),
       (SELECT count(*) FROM pg_stat_replication AS r WHERE r.sync_state IN ('sync', 'quorum')),
       (SELECT count(*) FROM pg_stat_replication AS r WHERE r.sync_state IS NULL),
       (SELECT count(*) FROM pg_stat_replication AS r
        WHERE coalesce(r.state, 'streaming') IN ('streaming', 'catchup')
          AND NOT EXISTS (SELECT FROM pg_replication_slots AS s
                          WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))
";

/// Where a role or a database has a setting of its own.
const OVERRIDES: &str = "
SELECT coalesce('role ' || r.rolname, 'every role') || ' in '
           || coalesce('database ' || d.datname, 'every database'),
       substr(o.setting, length('synchronous_commit=') + 1)
FROM pg_db_role_setting AS s
     CROSS JOIN LATERAL unnest(s.setconfig) AS o (setting)
     LEFT JOIN pg_roles AS r ON r.oid = s.setrole
     LEFT JOIN pg_database AS d ON d.oid = s.setdatabase
WHERE o.setting LIKE 'synchronous\\_commit=%'
  AND (s.setdatabase = 0 OR d.datname = current_database())
ORDER BY 1
";

struct DurabilityFacts {
    fsync: String,
    full_page_writes: String,
    synchronous_commit: String,
    synchronous_standby_names: String,
    data_checksums: String,
    synchronous_standbys: i64,
    /// Those whose state this role may not see.
    hidden_standbys: i64,
    standbys: i64,
    /// Who has a `synchronous_commit` of its own, and which.
    overrides: Vec<(String, String)>,
}

const CHECKS: &[fn(&DurabilityFacts) -> Diagnosis] =
    &[fsync, full_page_writes, synchronous_commit, commit_overrides, standbys, checksums];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("durability", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<DurabilityFacts, Error> {
    let row = client.query_one(LOOK, &[]).await?;
    let overrides = client.query(OVERRIDES, &[]).await?;
    let overrides = overrides.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    Ok(DurabilityFacts {
        fsync: row.try_get(0)?,
        full_page_writes: row.try_get(1)?,
        synchronous_commit: row.try_get(2)?,
        synchronous_standby_names: row.try_get(3)?,
        data_checksums: row.try_get(4)?,
        synchronous_standbys: row.try_get(5)?,
        hidden_standbys: row.try_get(6)?,
        standbys: row.try_get(7)?,
        overrides: overrides.collect::<Result<_, Error>>()?,
    })
}

fn fsync(facts: &DurabilityFacts) -> Diagnosis {
    let found = Diagnosis::new("fsync", facts.fsync.as_str());
    if facts.fsync == "on" {
        return found;
    }
    found.danger(
        "a crash of the machine loses acknowledged keys, whose retries run again, or damages the whole cluster",
        "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();",
    )
}

fn full_page_writes(facts: &DurabilityFacts) -> Diagnosis {
    let found = Diagnosis::new("full_page_writes", facts.full_page_writes.as_str());
    if facts.full_page_writes == "on" {
        return found;
    }
    found.danger(
        "a page that was half written when the power failed stays damaged, unless the file system never tears pages",
        "ALTER SYSTEM SET full_page_writes = on; SELECT pg_reload_conf();",
    )
}

fn synchronous_commit(facts: &DurabilityFacts) -> Diagnosis {
    let found = Diagnosis::new("synchronous_commit", facts.synchronous_commit.as_str());
    match weakness(&facts.synchronous_commit, facts.awaits_standbys()) {
        None => found,
        Some(risk) => found
            .warning(risk, "ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();"),
    }
}

fn commit_overrides(facts: &DurabilityFacts) -> Diagnosis {
    const NAME: &str = "synchronous_commit of roles";
    let weak = facts.overrides.iter().filter_map(|(whose, value)| {
        Some((whose, value, weakness(value, facts.awaits_standbys())?))
    });
    let weak: Vec<_> = weak.collect();
    let Some((_, _, risk)) = weak.first() else {
        let count = facts.overrides.len();
        return Diagnosis::new(NAME, format!("{count} with a setting of their own, none weaker"));
    };
    let words = weak.iter().map(|(whose, value, _)| format!("{whose}: {value}"));
    Diagnosis::new(NAME, words.collect::<Vec<_>>().join("; "))
        .warning(*risk, "ALTER ROLE … RESET synchronous_commit; or ALTER DATABASE … RESET …")
}

/// What a weaker `synchronous_commit` risks. The store's own sessions raise `off` to `on`.
fn weakness(value: &str, awaits_standbys: bool) -> Option<&'static str> {
    match value {
        "off" => Some(
            "the store raises it for itself, but a crash can lose what transactions of your services acknowledged in the last moments: effect and record go together",
        ),
        "local" if awaits_standbys => {
            Some("commits do not wait for the standbys: a failover can lose acknowledged keys")
        }
        "remote_write" if awaits_standbys => Some(
            "a commit waits until a standby has it in memory, not on disk: losing both machines at once loses acknowledged keys",
        ),
        _ => None,
    }
}

fn standbys(facts: &DurabilityFacts) -> Diagnosis {
    let DurabilityFacts { standbys, synchronous_standbys, synchronous_standby_names, .. } = facts;
    let found = |what: String| Diagnosis::new("standbys", what);
    match (facts.awaits_standbys(), *standbys, *synchronous_standbys) {
        (true, _, 0) if facts.hidden_standbys > 0 => {
            found(format!("{standbys} connected; this role may not see whether one is synchronous"))
                .note(
                    "if none is, every commit waits for a standby that is not there",
                    "GRANT pg_read_all_stats to this role, or run this as a superuser",
                )
        }
        (true, _, 0) => found(format!(
            "synchronous_standby_names is {synchronous_standby_names:?}, and no synchronous standby is connected"
        ))
        .danger(
            "every commit waits for a standby that is not there, so that requests with keys end in 503",
            "bring the standby back, or name another in synchronous_standby_names",
        ),
        (true, _, _) => found(format!("{standbys} connected, {synchronous_standbys} synchronous")),
        (false, 0, _) => found("none: the keys are on this server alone".to_owned()).note(
            "losing its disk loses every key, and retries after a restore may run again",
            "add a standby and name it in synchronous_standby_names, or know what a restore means: docs/backup.md",
        ),
        (false, _, _) => found(format!("{standbys} connected, none synchronous")).warning(
            "a failover can lose the last acknowledged keys, whose retries then run again",
            "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'; SELECT pg_reload_conf();",
        ),
    }
}

fn checksums(facts: &DurabilityFacts) -> Diagnosis {
    let found = Diagnosis::new("data_checksums", facts.data_checksums.as_str());
    if facts.data_checksums == "on" {
        return found;
    }
    found.note(
        "a page that the disk damaged is not noticed by the server; stored answers have a digest of their own",
        "stop the server and run pg_checksums --enable",
    )
}

impl DurabilityFacts {
    fn awaits_standbys(&self) -> bool {
        !self.synchronous_standby_names.trim().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> DurabilityFacts {
        let on = || "on".to_owned();
        DurabilityFacts {
            fsync: on(),
            full_page_writes: on(),
            synchronous_commit: on(),
            synchronous_standby_names: "ANY 1 (*)".to_owned(),
            data_checksums: on(),
            synchronous_standbys: 1,
            hidden_standbys: 0,
            standbys: 2,
            overrides: Vec::new(),
        }
    }

    #[test]
    fn a_server_that_keeps_what_it_acknowledges_is_well() {
        for check in CHECKS {
            assert_eq!(check(&facts()).concern, None);
        }
    }

    #[test]
    fn a_standby_that_nobody_waits_for_or_that_is_away_is_told_apart() {
        let asynchronous = DurabilityFacts { synchronous_standby_names: " ".to_owned(), ..facts() };
        assert_eq!(standbys(&asynchronous).severity(), Some(Severity::Warning));
        let alone = DurabilityFacts { standbys: 0, ..asynchronous };
        assert_eq!(standbys(&alone).severity(), Some(Severity::Note));
        let away = DurabilityFacts { standbys: 1, synchronous_standbys: 0, ..facts() };
        assert_eq!(standbys(&away).severity(), Some(Severity::Danger));
        let unseen = DurabilityFacts { hidden_standbys: 1, ..away };
        assert_eq!(standbys(&unseen).severity(), Some(Severity::Note), "it may be there");
    }

    #[test]
    fn local_commits_matter_only_where_somebody_counts_on_standbys() {
        let local = "local".to_owned();
        let waited_for = DurabilityFacts { synchronous_commit: local, ..facts() };
        assert_eq!(synchronous_commit(&waited_for).severity(), Some(Severity::Warning));
        let names = String::new();
        let alone = DurabilityFacts { synchronous_standby_names: names, ..waited_for };
        assert_eq!(synchronous_commit(&alone).severity(), None);
        let overrides = vec![("role shop in every database".to_owned(), "off".to_owned())];
        let of_a_role = DurabilityFacts { overrides, ..facts() };
        assert!(commit_overrides(&of_a_role).found.contains("role shop"));
        assert_eq!(commit_overrides(&of_a_role).severity(), Some(Severity::Warning));
    }
}
