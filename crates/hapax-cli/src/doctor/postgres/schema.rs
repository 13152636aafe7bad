//! Whether the schema is what the script made it.

use std::collections::{BTreeMap, BTreeSet};

use hapax::postgres::{VERSION, script};
use tokio_postgres::{Client, Error};

use super::{
    Diagnosis, judged,
    shipped_schema::{FunctionBody, ShippedSchema},
};

const HAS_META: &str = "SELECT to_regclass('hapax.meta') IS NOT NULL";
const META: &str = "SELECT version, works_with FROM hapax.schema_version()";
const FUNCTIONS: &str = "
SELECT proname::text, CASE WHEN prosqlbody IS NULL THEN prosrc END
FROM pg_proc WHERE pronamespace = to_regnamespace('hapax')
";
/// Tables and views, with the names of their primary keys that can be relied on.
const RELATIONS: &str = "
SELECT c.relname::text,
       EXISTS (SELECT FROM pg_index AS i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indisvalid
               AND i.indisready)
FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('hapax') AND c.relkind IN ('r', 'p', 'v')
";
const INDEXES: &str = "
SELECT c.relname::text, i.indisunique, i.indisvalid AND i.indisready
FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE c.relnamespace = to_regnamespace('hapax')
";
const TRIGGERS: &str = "
SELECT t.tgname::text FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace('hapax') AND NOT t.tgisinternal AND t.tgenabled IN ('O', 'A')
";

/// What the catalogue says.
struct SchemaFacts {
    /// Zero where there is no schema.
    version: i32,
    works_with: i32,
    functions: BTreeMap<String, Vec<FunctionBody>>,
    /// Tables and views, and whether they have a primary key.
    relations: BTreeMap<String, bool>,
    indexes: Vec<FoundIndex>,
    triggers: BTreeSet<String>,
    shipped: ShippedSchema,
}

struct FoundIndex {
    name: String,
    is_unique: bool,
    is_usable: bool,
}

const CHECKS: &[fn(&SchemaFacts) -> Diagnosis] = &[version, tables, indexes, functions, triggers];

pub(super) async fn examine(client: &Client) -> Vec<Diagnosis> {
    match gather(client).await {
        // Of another version nothing else can be compared.
        Ok(facts) if facts.version != VERSION => vec![version(&facts)],
        facts => judged("schema", facts, CHECKS),
    }
}

async fn gather(client: &Client) -> Result<SchemaFacts, Error> {
    let (mut version, mut works_with) = (0, 0);
    if client.query_one(HAS_META, &[]).await?.try_get(0)?
        && let Some(row) = client.query_opt(META, &[]).await?
    {
        (version, works_with) = (row.try_get(0)?, row.try_get(1)?);
    }
    let mut functions: BTreeMap<String, Vec<FunctionBody>> = BTreeMap::new();
    for row in client.query(FUNCTIONS, &[]).await? {
        let body: Option<String> = row.try_get(1)?;
        let body = body.map_or(FunctionBody::Parsed, FunctionBody::Quoted);
        functions.entry(row.try_get(0)?).or_default().push(body);
    }
    functions.values_mut().for_each(|bodies| bodies.sort());
    let relations = client.query(RELATIONS, &[]).await?;
    let relations = relations.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
    let indexes = client.query(INDEXES, &[]).await?;
    let indexes = indexes.iter().map(|row| {
        let (is_unique, is_usable) = (row.try_get(1)?, row.try_get(2)?);
        Ok(FoundIndex { name: row.try_get(0)?, is_unique, is_usable })
    });
    let triggers = client.query(TRIGGERS, &[]).await?;
    let triggers = triggers.iter().map(|row| row.try_get(0));
    Ok(SchemaFacts {
        version,
        works_with,
        functions,
        relations: relations.collect::<Result<_, Error>>()?,
        indexes: indexes.collect::<Result<_, Error>>()?,
        triggers: triggers.collect::<Result<_, Error>>()?,
        shipped: ShippedSchema::of(&script(0)),
    })
}

fn version(facts: &SchemaFacts) -> Diagnosis {
    let (found, needed) = (facts.version, VERSION);
    let said = |what: String| Diagnosis::new("schema", what);
    if found == 0 {
        return said("there is no schema".to_owned()).danger(
            "nothing can be kept; a gateway makes the schema when it starts, SQL functions are missing until then",
            "hapax migrate --store postgres://…",
        );
    }
    if facts.works_with > needed {
        return said(format!("version {found}, for programs of {} or newer", facts.works_with))
            .danger("this program refuses to start", "upgrade this program");
    }
    if found < needed {
        return said(format!("version {found}, this program needs {needed}")).warning(
            "programs of this version bring it up to date when they start, if their role may; otherwise they do not start",
            "hapax migrate --store postgres://…",
        );
    }
    if found > needed {
        return said(format!("version {found}, this program knows {needed}")).note(
            "a newer version has been here; this one still works",
            "upgrade this program, and ask it again",
        );
    }
    said(format!("version {found}"))
}

fn tables(facts: &SchemaFacts) -> Diagnosis {
    let is_wrong = |name: &str, has_key: bool| match facts.relations.get(name) {
        None => Some(format!("{name} is missing")),
        Some(false) if has_key => Some(format!("{name} has lost its primary key")),
        Some(_) => None,
    };
    let tables = facts.shipped.tables.iter();
    let wrong = tables.filter_map(|(name, table)| is_wrong(name, table.has_primary_key));
    let views = facts.shipped.views.iter().filter_map(|name| is_wrong(name, false));
    let wrong: Vec<_> = wrong.chain(views).collect();
    let count = facts.shipped.tables.len() + facts.shipped.views.len();
    drift("tables", &wrong, format!("all {count} are there"))
}

fn indexes(facts: &SchemaFacts) -> Diagnosis {
    const NAME: &str = "indexes";
    let broken = facts.indexes.iter().filter(|index| !index.is_usable);
    let broken: Vec<_> = broken.collect();
    if !broken.is_empty() {
        let names = broken.iter().map(|index| index.name.as_str()).collect::<Vec<_>>().join(", ");
        let found = Diagnosis::new(NAME, format!("not valid: {names}"));
        let advice = "REINDEX INDEX hapax.…; or drop it and create it again";
        return if broken.iter().any(|index| index.is_unique) {
            found.danger("uniqueness may not hold: two requests with one key can both run", advice)
        } else {
            found.warning("it is written and not used: looking for keys becomes slow", advice)
        };
    }
    let is_there = |name: &&String| facts.indexes.iter().any(|index| index.name == **name);
    let missing = facts.shipped.indexes.iter().filter(|name| !is_there(name));
    let missing: Vec<_> = missing.map(|name| format!("{name} is missing")).collect();
    drift(NAME, &missing, format!("all {} are valid", facts.indexes.len()))
}

fn functions(facts: &SchemaFacts) -> Diagnosis {
    let shipped = facts.shipped.functions();
    let wrong = shipped.iter().filter_map(|(name, bodies)| match facts.functions.get(*name) {
        None => Some(format!("{name} is missing")),
        Some(found) if found.iter().ne(bodies.iter().copied()) => {
            Some(format!("{name} was changed"))
        }
        Some(_) => None,
    });
    drift("functions", &wrong.collect::<Vec<_>>(), format!("all {} are as shipped", shipped.len()))
}

fn triggers(facts: &SchemaFacts) -> Diagnosis {
    let missing = facts.shipped.triggers.difference(&facts.triggers);
    let missing: Vec<_> = missing.map(|name| format!("{name} is missing or disabled")).collect();
    drift("triggers", &missing, format!("all {} are enabled", facts.shipped.triggers.len()))
}

/// What it means that something is not as the script made it.
fn drift(check: &'static str, wrong: &[String], well: String) -> Diagnosis {
    if wrong.is_empty() {
        return Diagnosis::new(check, well);
    }
    Diagnosis::new(check, wrong.join(", ")).danger(
        "the schema is not what this version was tested with: what it promises may not hold",
        "see what changed it; hapax migrate --print shows how it should be",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::diagnosis::Severity;

    fn facts() -> SchemaFacts {
        let script = "CREATE TABLE hapax.t (id uuid PRIMARY KEY); CREATE INDEX t_i ON hapax.t (id); \
                      CREATE FUNCTION hapax.f() RETURNS int LANGUAGE sql AS $$1$$;";
        let body = FunctionBody::Quoted("1".to_owned());
        let index = |name: &str, is_unique| FoundIndex {
            name: name.to_owned(),
            is_unique,
            is_usable: true,
        };
        SchemaFacts {
            version: VERSION,
            works_with: VERSION,
            functions: BTreeMap::from([("f".to_owned(), vec![body])]),
            relations: BTreeMap::from([("t".to_owned(), true)]),
            indexes: vec![index("t_pkey", true), index("t_i", false)],
            triggers: BTreeSet::new(),
            shipped: ShippedSchema::of(script),
        }
    }

    #[test]
    fn a_schema_as_shipped_is_well_and_whatever_differs_is_named() {
        assert!(CHECKS.iter().all(|check| check(&facts()).concern.is_none()));
        let changed = FunctionBody::Quoted("2".to_owned());
        let functions_of = BTreeMap::from([("f".to_owned(), vec![changed])]);
        assert_eq!(
            functions(&SchemaFacts { functions: functions_of, ..facts() }).found,
            "f was changed"
        );
        let relations = BTreeMap::from([("t".to_owned(), false)]);
        let found = tables(&SchemaFacts { relations, ..facts() }).found;
        assert_eq!(found, "t has lost its primary key");
    }

    #[test]
    fn an_index_that_is_not_valid_is_worse_where_it_keeps_keys_apart() {
        let mut facts = facts();
        facts.indexes[1].is_usable = false;
        assert_eq!(indexes(&facts).severity(), Some(Severity::Warning));
        facts.indexes[0].is_usable = false;
        assert_eq!(indexes(&facts).severity(), Some(Severity::Danger));
    }

    #[test]
    fn versions_say_who_has_to_move() {
        let at = |version, works_with| {
            super::version(&SchemaFacts { version, works_with, ..facts() }).severity()
        };
        assert_eq!(at(0, 0), Some(Severity::Danger));
        assert_eq!(at(VERSION - 1, VERSION - 1), Some(Severity::Warning));
        assert_eq!(at(VERSION + 1, VERSION), Some(Severity::Note));
        assert_eq!(at(VERSION + 2, VERSION + 1), Some(Severity::Danger));
    }
}
