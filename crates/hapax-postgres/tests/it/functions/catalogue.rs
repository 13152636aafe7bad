//! What the catalogue of a migrated server says about the functions: nothing that runs with the rights of the
//! owner looks up a name where its caller can put something.

use tokio_postgres::Client;

use super::shop;

/// The functions that one with the rights of its owner can reach, itself among them; their code is without
/// comments and literals.
const REACHED: &str = "
    CREATE TEMPORARY VIEW functions AS
        SELECT p.*, regexp_replace(regexp_replace(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc),
                                                  '--[^\\n]*', '', 'g'), '''[^'']*''', '''''', 'g') AS code
        FROM pg_proc AS p WHERE p.pronamespace = 'hapax'::regnamespace;
    CREATE TEMPORARY VIEW reached AS
        WITH RECURSIVE r(oid) AS (
            SELECT f.oid FROM functions AS f WHERE f.prosecdef
            UNION
            SELECT f.oid FROM r JOIN functions AS c ON c.oid = r.oid JOIN functions AS f
                ON c.code ~ ('\\mhapax\\.' || f.proname || '\\s*\\('))
        SELECT f.* FROM functions AS f WHERE f.oid IN (SELECT r.oid FROM r);
";

/// Relations that are named without their schema.
const UNQUALIFIED: &str = "
    SELECT DISTINCT f.proname || ' names ' || m.word[1]
    FROM reached AS f,
         regexp_matches(f.code, '(?:FROM|JOIN|INTO|UPDATE|TABLE|ONLY|LIKE)\\s+(\\w+)(?![\\w.(])', 'g') AS m(word)
    JOIN pg_class AS c ON c.relname = m.word[1]
    WHERE f.prosqlbody IS NULL";

/// Those that are neither bound to their names when they are created nor have a path of their own. Their code is without
/// what is qualified, without assignments, and without the setting at its head.
const LEAN: &str = "
    CREATE TEMPORARY VIEW lean AS
        SELECT f.proname::text AS name, f.prolang = (SELECT l.oid FROM pg_language AS l WHERE l.lanname = 'plpgsql') AS is_plpgsql,
               regexp_replace(regexp_replace(regexp_replace(regexp_replace(f.code,
                   'OPERATOR\\(pg_catalog\\.[^)]+\\)', ' ', 'g'),
                   '(::)?\\m(hapax|pg_catalog)\\.\\w+', 'QUALIFIED', 'g'),
                   ':=|#variable_conflict', ' ', 'g'),
                   '(\\mSET|,)(\\s+\\w+) = ', '\\1\\2 ', 'g') AS code
        FROM reached AS f
        WHERE f.prosqlbody IS NULL AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (f.proconfig), false);
";

/// Whatever in them would be looked up where their caller says: operators, calls, types, and anything in another language.
const LOOKED_UP: &str = "
    SELECT DISTINCT name || ' looks up ' || what FROM (
        SELECT l.name, m.word[1] AS what FROM lean AS l, regexp_matches(l.code, '[-+*/<>=~!@#%^&|?:]+', 'g') AS m(word)
        UNION ALL
        SELECT l.name, m.word[1] FROM lean AS l, regexp_matches(l.code, '(\\w+)\\s*\\(', 'g') AS m(word)
        WHERE m.word[1] NOT IN ('QUALIFIED', 'VALUES', 'EXISTS', 'CONFLICT', 'FROM', 'AND')
        UNION ALL
        SELECT l.name, m.word[1]
        FROM lean AS l, regexp_matches(substring(l.code FROM 'DECLARE(.*?)BEGIN'), '\\n\\s+\\w+ (\\w+)', 'g') AS m(word)
        WHERE m.word[1] NOT IN ('QUALIFIED', 'bigint', 'integer', 'smallint', 'boolean')
        UNION ALL
        SELECT l.name, 'another language' FROM lean AS l WHERE NOT l.is_plpgsql
    ) AS found ORDER BY 1";

async fn told(client: &Client, text: &str) -> Vec<String> {
    let rows = client.query(text, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_with_the_owners_rights_looks_up_no_name_where_the_caller_can_put_one() {
    let (database, _store) = shop().await;
    let client = database.client().await;
    client.batch_execute(REACHED).await.unwrap();
    let reached = told(&client, "SELECT proname::text FROM reached ORDER BY 1").await;
    for known in ["begin_bytes", "clock", "end_bytes", "lock_number", "record_bytes", "status"] {
        assert!(reached.iter().any(|name| name == known), "{known} is not among {reached:?}");
    }
    client.batch_execute(LEAN).await.unwrap();
    let lean = told(&client, "SELECT name FROM lean ORDER BY 1").await;
    assert!(lean.iter().any(|name| name == "emit_bytes"), "{lean:?}");
    assert_eq!(told(&client, LOOKED_UP).await, [""; 0]);
    // A view would be read by whatever it was bound to when it was created.
    let views = "SELECT DISTINCT c.relname::text FROM reached AS f JOIN pg_class AS c \
                 ON f.code ~ ('\\mhapax\\.' || c.relname || '\\M') \
                 WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind = 'v'";
    assert_eq!(told(&client, views).await, [""; 0]);
    assert_eq!(told(&client, UNQUALIFIED).await, [""; 0]);
    let control = "CREATE FUNCTION hapax.control() RETURNS void LANGUAGE plpgsql SECURITY DEFINER \
                   SET search_path = pg_catalog AS 'DECLARE\n  x text;\nBEGIN PERFORM FROM pg_inherits; \
                   x := upper(x) || pg_catalog.lower(x)::text; END'";
    client.batch_execute(control).await.unwrap();
    let found = [
        "control looks up ::",
        "control looks up text",
        "control looks up upper",
        "control looks up ||",
    ];
    assert_eq!(told(&client, LOOKED_UP).await, found);
    assert_eq!(told(&client, UNQUALIFIED).await, ["control names pg_inherits"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_with_the_owners_rights_takes_built_in_types_alone() {
    let (database, _store) = shop().await;
    let client = database.client().await;
    let foreign = "SELECT DISTINCT p.proname::text FROM pg_proc AS p, unnest(p.proargtypes) AS a(type) \
                   JOIN pg_type AS t ON t.oid = a.type \
                   WHERE p.pronamespace = 'hapax'::regnamespace AND p.prosecdef \
                     AND (t.typtype = 'p' OR t.typnamespace <> 'pg_catalog'::regnamespace)";
    assert_eq!(told(&client, foreign).await, [""; 0]);
    let definers = "SELECT count(*)::text FROM pg_proc WHERE pronamespace = 'hapax'::regnamespace AND prosecdef";
    assert_eq!(told(&client, definers).await, ["8"]);
}

/// A literal with a backslash means something else where `standard_conforming_strings` is off.
#[tokio::test(flavor = "multi_thread")]
async fn no_body_has_a_backslash_in_a_plain_literal() {
    let (database, _store) = shop().await;
    let client = database.client().await;
    let plain = "SELECT proname::text FROM pg_proc WHERE pronamespace = 'hapax'::regnamespace AND prosqlbody IS NULL \
                 AND regexp_replace(prosrc, 'E''[^'']*''', '', 'g') ~ '''[^'']*\\\\[^'']*'''";
    assert_eq!(told(&client, plain).await, [""; 0]);
}
