//! Whether the tables are looked after: vacuum, storage parameters, ages.

use std::collections::BTreeMap;

use hapax::postgres::script;
use tokio_postgres::{Client, Error};

use super::{Diagnosis, judged, shipped_schema::ShippedSchema};
use crate::{table::grouped, units::size};

const LOOK: &str = "
SELECT current_setting('autovacuum'), current_setting('track_counts'),
       age(datfrozenxid)::int8, mxid_age(datminmxid)::int8,
       current_setting('autovacuum_freeze_max_age')::int8
FROM pg_database WHERE datname = current_database()
";
const TABLES: &str = "
SELECT c.relname::text, coalesce(c.reloptions, '{}'), coalesce(s.n_live_tup, 0), coalesce(s.n_dead_tup, 0),
       to_char(greatest(s.last_vacuum, s.last_autovacuum), 'YYYY-MM-DD HH24:MI')
FROM pg_class AS c LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE c.relnamespace = to_regnamespace('hapax') AND c.relkind = 'r' ORDER BY c.relname
";

/// No row where there is no such table.
const KEY_INDEX: &str = "
SELECT pg_relation_size(x.indexrelid)::int8, greatest(c.reltuples::int8, coalesce(s.n_live_tup, 0), 0)
FROM pg_index AS x JOIN pg_class AS c ON c.oid = x.indrelid LEFT JOIN pg_stat_all_tables AS s ON s.relid = c.oid
WHERE c.oid = to_regclass('hapax.operations') AND x.indisprimary
";

/// Dead rows that are nothing special: what churns has them until the next vacuum.
const DEAD_ROWS: i64 = 100_000;
/// Where PostgreSQL itself begins to warn is 40 million before the end, at two billion.
const AGE_OLD: i64 = 1_000_000_000;
const AGE_TOO_OLD: i64 = 1_600_000_000;
/// A key takes 28 bytes of a page, and pages that are filled in any order are two thirds full.
const KEY_BYTES: i64 = 42;
/// How many times larger than it would be the index of keys may be, and by how much, in bytes.
const INDEX_GROWN_TIMES: i64 = 4;
const INDEX_GROWN: i64 = 16 << 20;
const INDEX_GROWN_MUCH: i64 = 1 << 30;

struct UpkeepFacts {
    autovacuum: String,
    track_counts: String,
    transactions: i64,
    multixacts: i64,
    freeze_max: i64,
    tables: Vec<FoundTable>,
    /// `None` where there are no operations.
    key_index: Option<KeyIndex>,
    shipped: ShippedSchema,
}

/// How large the index of keys is, and for how many.
struct KeyIndex {
    bytes: i64,
    keys: i64,
}

struct FoundTable {
    name: String,
    options: BTreeMap<String, String>,
    live: i64,
    dead: i64,
    vacuumed: Option<String>,
}

const CHECKS: &[fn(&UpkeepFacts) -> Diagnosis] =
    &[autovacuum, storage, dead_rows, key_index, wraparound];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    judged("upkeep", gather(client).await, CHECKS)
}

async fn gather(client: &Client) -> Result<UpkeepFacts, Error> {
    let row = client.query_one(LOOK, &[]).await?;
    let tables = client.query(TABLES, &[]).await?;
    let index = client.query_opt(KEY_INDEX, &[]).await?;
    let index =
        index.map(|row| Ok::<_, Error>(KeyIndex { bytes: row.try_get(0)?, keys: row.try_get(1)? }));
    let tables = tables.iter().map(|row| {
        let options: Vec<String> = row.try_get(1)?;
        let options = options.iter().filter_map(|option| option.split_once('='));
        let options = options.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let (name, live, dead) = (row.try_get(0)?, row.try_get(2)?, row.try_get(3)?);
        Ok(FoundTable { name, options, live, dead, vacuumed: row.try_get(4)? })
    });
    Ok(UpkeepFacts {
        autovacuum: row.try_get(0)?,
        track_counts: row.try_get(1)?,
        transactions: row.try_get(2)?,
        multixacts: row.try_get(3)?,
        freeze_max: row.try_get(4)?,
        tables: tables.collect::<Result<_, Error>>()?,
        key_index: index.transpose()?,
        shipped: ShippedSchema::of(&script(0)),
    })
}

fn autovacuum(facts: &UpkeepFacts) -> Diagnosis {
    const NAME: &str = "autovacuum";
    let off = facts.tables.iter().filter(|table| {
        table
            .options
            .get("autovacuum_enabled")
            .is_some_and(|value| value == "false" || value == "off")
    });
    let off: Vec<_> = off.map(|table| table.name.as_str()).collect();
    let risk = "the tables grow without end, because room of what was purged is not used again";
    if facts.autovacuum != "on" || facts.track_counts != "on" {
        let (autovacuum, track_counts) = (&facts.autovacuum, &facts.track_counts);
        let what = format!("autovacuum is {autovacuum}, track_counts is {track_counts}");
        let advice = "ALTER SYSTEM SET autovacuum = on; ALTER SYSTEM SET track_counts = on; SELECT pg_reload_conf();";
        return Diagnosis::new(NAME, what).danger(risk, advice);
    }
    if off.is_empty() {
        return Diagnosis::new(NAME, "on");
    }
    let advice = format!("ALTER TABLE hapax.{} RESET (autovacuum_enabled);", off[0]);
    Diagnosis::new(NAME, format!("off for {}", off.join(", "))).danger(risk, advice)
}

fn storage(facts: &UpkeepFacts) -> Diagnosis {
    const NAME: &str = "storage parameters";
    let differs = facts.tables.iter().flat_map(|table| {
        let shipped = facts.shipped.tables.get(&table.name).map(|shipped| &shipped.options);
        shipped.into_iter().flatten().filter_map(|(name, value)| {
            let found = table.options.get(name).map_or("not set", String::as_str);
            (found != value).then(|| (table.name.as_str(), name, value, found.to_owned()))
        })
    });
    let differs: Vec<_> = differs.collect();
    let Some((table, name, value, _)) = differs.first() else {
        return Diagnosis::new(NAME, "as shipped");
    };
    let words = differs.iter().map(|(table, name, value, found)| {
        format!("{name} of {table} is {found}, shipped as {value}")
    });
    Diagnosis::new(NAME, words.collect::<Vec<_>>().join("; ")).note(
        "right if somebody tuned it; otherwise tables grow, or settles leave their page",
        format!("ALTER TABLE hapax.{table} SET ({name} = {value});"),
    )
}

fn dead_rows(facts: &UpkeepFacts) -> Diagnosis {
    const NAME: &str = "dead rows";
    let worst = facts.tables.iter().max_by_key(|table| table.dead);
    let Some(FoundTable { name, live, dead, vacuumed, .. }) = worst else {
        return Diagnosis::new(NAME, "no tables");
    };
    let vacuumed = vacuumed.as_deref().unwrap_or("never");
    let count = |rows: &i64| grouped(*rows as f64);
    let words = format!(
        "{name} has {} beside {} live, last vacuumed: {vacuumed}",
        count(dead),
        count(live)
    );
    let found = Diagnosis::new(NAME, words);
    if *dead <= DEAD_ROWS || dead <= live {
        return found;
    }
    found.warning(
        "the table is mostly dead rows: it takes room, and looking through it takes longer",
        format!("see what holds vacuum back (the check \"long transactions\"), then VACUUM hapax.{name};"),
    )
}

/// An estimate from how many keys there are: an index keeps the room of what was purged, for what comes.
fn key_index(facts: &UpkeepFacts) -> Diagnosis {
    const NAME: &str = "key index";
    let Some(KeyIndex { bytes, keys }) = facts.key_index else {
        return Diagnosis::new(NAME, "no operations");
    };
    let expected = keys.saturating_mul(KEY_BYTES);
    let in_words = |bytes: i64| size(u64::try_from(bytes).unwrap_or(0));
    let words = format!(
        "{} for about {} keys, which need {}",
        in_words(bytes),
        grouped(keys as f64),
        in_words(expected)
    );
    let found = Diagnosis::new(NAME, words);
    let grown = bytes - expected;
    if grown < INDEX_GROWN || bytes / INDEX_GROWN_TIMES < expected {
        return found;
    }
    let risk = "it takes room on disk and in memory, so that claims read more of it from disk";
    let advice =
        "VACUUM ANALYZE hapax.operations; REINDEX INDEX CONCURRENTLY hapax.operations_pkey;";
    if grown < INDEX_GROWN_MUCH { found.note(risk, advice) } else { found.warning(risk, advice) }
}

fn wraparound(facts: &UpkeepFacts) -> Diagnosis {
    let oldest = facts.transactions.max(facts.multixacts);
    let words = format!(
        "the oldest transaction is {} back, of {} before it is frozen by force",
        grouped(oldest as f64),
        grouped(facts.freeze_max as f64)
    );
    let found = Diagnosis::new("wraparound", words);
    let risk = "at two billion the server takes no more writes";
    let advice =
        "VACUUM (FREEZE) as superuser; end old transactions, prepared transactions and slots first";
    match oldest {
        AGE_TOO_OLD.. => found.danger(risk, advice),
        AGE_OLD.. => found.warning(risk, advice),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> UpkeepFacts {
        let on = || "on".to_owned();
        let options = BTreeMap::from([("fillfactor".to_owned(), "45".to_owned())]);
        let table =
            FoundTable { name: "t".to_owned(), options, live: 10, dead: 20, vacuumed: None };
        UpkeepFacts {
            autovacuum: on(),
            track_counts: on(),
            transactions: 1_000_000,
            multixacts: 3,
            freeze_max: 200_000_000,
            tables: vec![table],
            key_index: Some(KeyIndex { bytes: 480 << 20, keys: 10_000_000 }),
            shipped: ShippedSchema::of("CREATE TABLE hapax.t (id int) WITH (fillfactor = 45);"),
        }
    }

    #[test]
    fn tables_that_nobody_vacuums_are_told() {
        assert!(CHECKS.iter().all(|check| check(&facts()).concern.is_none()));
        let off = UpkeepFacts { autovacuum: "off".to_owned(), ..facts() };
        assert_eq!(autovacuum(&off).severity(), Some(Severity::Danger));
        let mut of_a_table = facts();
        let disabled = ("autovacuum_enabled".to_owned(), "false".to_owned());
        of_a_table.tables[0].options.extend([disabled]);
        assert_eq!(autovacuum(&of_a_table).found, "off for t");
        let mut bloated = facts();
        bloated.tables[0].dead = 1_000_000;
        assert_eq!(dead_rows(&bloated).severity(), Some(Severity::Warning));
    }

    #[test]
    fn a_storage_parameter_that_differs_is_told_with_what_it_was() {
        let mut tuned = facts();
        tuned.tables[0].options.insert("fillfactor".to_owned(), "90".to_owned());
        assert_eq!(storage(&tuned).found, "fillfactor of t is 90, shipped as 45");
        tuned.tables[0].options.clear();
        assert_eq!(storage(&tuned).severity(), Some(Severity::Note));
    }

    #[test]
    fn an_index_is_told_that_is_much_larger_than_its_keys_need() {
        let of = |bytes, keys| {
            let key_index = Some(KeyIndex { bytes, keys });
            super::key_index(&UpkeepFacts { key_index, ..facts() })
        };
        assert_eq!(of(8192, 0).severity(), None);
        assert_eq!(of(15 << 20, 0).severity(), None, "it is small");
        assert_eq!(
            of(1 << 30, 10_000_000).severity(),
            None,
            "it is less than four times too large"
        );
        assert_eq!(of(480 << 20, 1_000_000).severity(), Some(Severity::Note));
        let much = of(2 << 30, 1_000_000);
        assert_eq!(much.found, "2.0 GiB for about 1,000,000 keys, which need 40.0 MiB");
        assert_eq!(much.severity(), Some(Severity::Warning));
        assert!(much.concern.unwrap().advice.contains("REINDEX INDEX CONCURRENTLY"));
        let gone = UpkeepFacts { key_index: None, ..facts() };
        assert_eq!(key_index(&gone).severity(), None);
    }

    #[test]
    fn age_is_told_before_it_is_too_late() {
        let at = |multixacts| wraparound(&UpkeepFacts { multixacts, ..facts() }).severity();
        assert_eq!(at(900_000_000), None);
        assert_eq!(at(1_100_000_000), Some(Severity::Warning));
        assert_eq!(at(1_700_000_000), Some(Severity::Danger));
    }
}
