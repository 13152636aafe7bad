//! What holds others up: long transactions, and prepared ones that nobody ended.

use std::time::Duration;

use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged};
use crate::units::span;

/// The longest transaction of this database; what a role may not see has no times.
const LONGEST: &str = "
SELECT pid, coalesce(usename, '')::text, coalesce(state, ''),
       extract(epoch FROM clock_timestamp() - xact_start)::int8
FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL
  AND backend_type = 'client backend'
ORDER BY xact_start LIMIT 1
";
const HIDDEN: &str = "
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state IS NULL AND backend_type IS NULL
";
const PREPARED: &str = "
SELECT gid, extract(epoch FROM clock_timestamp() - prepared)::int8, count(*) OVER ()
FROM pg_prepared_xacts WHERE database = current_database() ORDER BY prepared LIMIT 1
";

/// Longer than anything that serves requests.
const LONG: Duration = Duration::from_secs(10 * 60);
/// Longer than a coordinator needs to come back.
const LEFT_BEHIND: Duration = Duration::from_secs(5 * 60);

struct TrafficFacts {
    longest: Option<LongTransaction>,
    /// Sessions whose transactions this role may not see.
    hidden: i64,
    prepared: Option<PreparedTransaction>,
}

struct LongTransaction {
    pid: i32,
    role: String,
    state: String,
    age: Duration,
}

struct PreparedTransaction {
    name: String,
    age: Duration,
    count: i64,
}

const CHECKS: &[fn(&TrafficFacts) -> Diagnosis] = &[long_transactions, prepared];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("traffic", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<TrafficFacts, Error> {
    let longest = client.query_opt(LONGEST, &[]).await?.map(|row| {
        let (pid, role, state) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok::<_, Error>(LongTransaction { pid, role, state, age: secs(row.try_get(3)?) })
    });
    let prepared = client.query_opt(PREPARED, &[]).await?.map(|row| {
        let (name, age, count) = (row.try_get(0)?, secs(row.try_get(1)?), row.try_get(2)?);
        Ok::<_, Error>(PreparedTransaction { name, age, count })
    });
    Ok(TrafficFacts {
        longest: longest.transpose()?,
        hidden: client.query_one(HIDDEN, &[]).await?.try_get(0)?,
        prepared: prepared.transpose()?,
    })
}

fn secs(secs: i64) -> Duration {
    Duration::from_secs(u64::try_from(secs).unwrap_or(0))
}

fn long_transactions(facts: &TrafficFacts) -> Diagnosis {
    const NAME: &str = "long transactions";
    let hidden = match facts.hidden {
        0 => String::new(),
        hidden => {
            format!("; {hidden} sessions this role may not look into (GRANT pg_read_all_stats)")
        }
    };
    let Some(LongTransaction { pid, role, state, age }) = &facts.longest else {
        return Diagnosis::new(NAME, format!("none{hidden}"));
    };
    let words = format!("the longest is {} old (pid {pid}, {role}, {state}){hidden}", span(*age));
    let found = Diagnosis::new(NAME, words);
    if *age < LONG {
        return found;
    }
    found.warning(
        "vacuum removes nothing that is younger, so that tables grow, and an operation it holds stays locked",
        format!("see what it does in pg_stat_activity; SELECT pg_terminate_backend({pid});"),
    )
}

fn prepared(facts: &TrafficFacts) -> Diagnosis {
    const NAME: &str = "prepared transactions";
    let Some(PreparedTransaction { name, age, count }) = &facts.prepared else {
        return Diagnosis::new(NAME, "none");
    };
    let found = Diagnosis::new(NAME, format!("{count}; the oldest, {name}, is {} old", span(*age)));
    if *age < LEFT_BEHIND {
        return found;
    }
    let name = name.replace('\'', "''");
    found.warning(
        "it keeps its locks and holds vacuum back, over restarts too",
        format!(
            "ask its coordinator, then COMMIT PREPARED '{name}'; or ROLLBACK PREPARED '{name}';"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    #[test]
    fn what_has_gone_on_for_too_long_is_told_with_how_to_end_it() {
        let facts = |minutes: u64| {
            let age = Duration::from_secs(60 * minutes);
            let (role, state) = ("shop".to_owned(), "idle in transaction".to_owned());
            TrafficFacts {
                longest: Some(LongTransaction { pid: 7, role, state, age }),
                hidden: 0,
                prepared: Some(PreparedTransaction { name: "it's".to_owned(), age, count: 1 }),
            }
        };
        assert!(CHECKS.iter().all(|check| check(&facts(1)).concern.is_none()));
        let long = long_transactions(&facts(30));
        assert_eq!(long.severity(), Some(Severity::Warning));
        assert!(long.concern.unwrap().advice.contains("pg_terminate_backend(7)"));
        let left = prepared(&facts(30));
        assert!(left.concern.unwrap().advice.contains("ROLLBACK PREPARED 'it''s'"));
    }
}
