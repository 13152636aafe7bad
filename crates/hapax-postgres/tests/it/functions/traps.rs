//! A role that may only call the functions, and puts something of its own in the way of every name they use:
//! nothing of it is ever run with the rights of another.

use super::{Refusal, Service, rights::Role, shop};
use crate::backend::{Postgres, connect};

/// Whose schema it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Superuser,
    Ordinary,
}

/// Statements of a role with the functions alone. No name in them is looked up but those of schema hapax.
const CALLS: &[&str] = &[
    // New, kept for long, with each kind of value.
    "BEGIN; SELECT hapax.begin('acme', 's', 'text', 'r', retention => '300 days'); \
     SELECT hapax.finish(hapax.operation_id('acme', 's', 'text'), 1, 201, '{\"a\": [\"b\", \"c\"]}', 'body'); COMMIT",
    "BEGIN; SELECT hapax.begin('acme', 's', 'json', pg_catalog.to_jsonb(1), retention => '200 days'); \
     SELECT hapax.finish(hapax.operation_id('acme', 's', 'json'), 1, body => pg_catalog.to_jsonb(1)); COMMIT",
    "BEGIN; SELECT hapax.begin('acme', 's', 'bytes', pg_catalog.decode('ff', 'hex'), retention => '100 days'); \
     SELECT hapax.fail(hapax.operation_id('acme', 's', 'bytes'), 1, body => pg_catalog.decode('ff', 'hex')); COMMIT",
    "SELECT hapax.record('acme', 's', 'recorded', 'r', 201, '{\"a\": [\"b\", \"c\"]}', 'body', retention => '300 days')",
    "SELECT hapax.record('acme', 's', 'failed', pg_catalog.decode('ff', 'hex'), 402, body => pg_catalog.decode('ff', 'hex'))",
    // Replayed, refused, in doubt, gone and begun anew.
    "SELECT hapax.begin('acme', 's', 'text', 'r')",
    "SELECT hapax.begin('acme', 's', 'text', 'other')",
    "SELECT hapax.begin('acme', 's', 'busy', wait => '5 milliseconds')",
    "SELECT hapax.begin('acme', 's', 'doubt')",
    "SELECT hapax.begin('acme', 's', 'gone')",
    "BEGIN; SELECT hapax.begin('acme', 's', 'spent', tombstone => '1 day'); ROLLBACK",
    "SELECT hapax.emit('t', 'k', 'payload', '{\"a\": \"b\"}')",
    "SELECT hapax.emit('t', 'k', pg_catalog.decode('ff', 'hex'))",
    "SELECT hapax.first_delivery('c', 'm', 'content', retention => '300 days')",
    "SELECT hapax.first_delivery('c', 'm', 'content')",
    "SELECT hapax.first_delivery('c', 'old', retention => '1 second')",
    "SELECT hapax.fail_delivery('c', 'm', 'other', 'why', headers => '{\"a\": \"b\"}')",
    "SELECT hapax.fail_delivery('c', 'poison', 'content', 'why', attempts_max => 1)",
    "SELECT hapax.fail_delivery('new', 'failed', pg_catalog.decode('ff', 'hex'), for_good => true)",
    "SELECT hapax.status('acme', 's', 'text')",
    "SELECT hapax.schema_version()",
    "SELECT hapax.operation_id('acme', 's', 'text')",
];

/// What the owner prepares: an operation in each state that a call above meets.
const SCENES: &str = "
    SELECT hapax.begin('acme', 's', 'doubt'); SELECT hapax.begin('acme', 's', 'gone'); SELECT hapax.begin('acme', 's', 'spent');
    UPDATE hapax.operations SET until = 1 WHERE key = 'doubt';
    UPDATE hapax.operations SET state = 7, until = 0, expires_at = 1, tombstone = 4000000000000000 WHERE key = 'gone';
    UPDATE hapax.operations SET state = 6, until = 0 WHERE key = 'spent';
    SELECT hapax.first_delivery('c', 'old'); UPDATE hapax.inbox SET received_at = 1 WHERE message_id = 'old';
    CREATE FUNCTION public.old_way() RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog AS
        'BEGIN RETURN (SELECT count(*) FROM pg_inherits WHERE inhrelid IS NULL); END';
";

async fn check(owner: Owner) {
    let (role, keeper) = (Role::create().await, Role::create().await);
    let database = match owner {
        Owner::Superuser => shop().await.0,
        Owner::Ordinary => keeper.shop().await,
    };
    let service = role.enter(&database).await;
    database.client().await.batch_execute(SCENES).await.unwrap();
    let other = role.enter_again(&database).await;
    other.run("BEGIN; SELECT hapax.begin('acme', 's', 'busy')").await;
    service.run(include_str!("traps.sql")).await;
    for call in CALLS {
        let called = service.client.batch_execute(call).await.map_err(Refusal::from);
        assert_eq!(called, Ok(()), "{owner:?}: {call}");
    }
    other.run("ROLLBACK").await;
    whoever_walks_into_them_is_caught(&service, &database).await;
    let rights = "SELECT rolsuper OR pg_catalog.pg_has_role(rolname, current_user, 'MEMBER') FROM pg_roles WHERE rolname = $1";
    let gained: bool =
        database.client().await.query_one(rights, &[&role.name]).await.unwrap().get(0);
    assert!(!gained, "{owner:?}");
    let stored = "SELECT count(*) FROM hapax.operations WHERE state IN (3, 4)";
    assert_eq!(database.number(stored).await, 5);
    assert_eq!(database.number("SELECT count(*) FROM hapax.outbox").await, 2);
}

/// The traps do work: for the role itself, and for a function with a path that does not end in `pg_temp`.
async fn whoever_walks_into_them_is_caught(service: &Service, database: &Postgres) {
    for text in [
        "SELECT sha256(pg_catalog.decode('ff', 'hex'))",
        "SELECT pg_catalog.int4(1) || pg_catalog.text('x')",
        "SELECT * FROM pg_inherits",
        "SELECT CAST('x' AS uuid)",
    ] {
        let refused = service.refused(text).await;
        assert!(refused.code == "HX666" || refused.code == "22P02", "{text}: {refused:?}");
    }
    let owner = database.config().get_user().unwrap().to_owned();
    let refused = service.refused("SELECT public.old_way()").await;
    assert_eq!(refused.message, format!("sprung pg_inherits as {owner}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_the_functions_use_can_be_trapped() {
    check(Owner::Superuser).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_name_can_be_trapped_where_the_owner_is_an_ordinary_role() {
    check(Owner::Ordinary).await;
}

/// A type of the caller's own, with a cast to text that runs the caller's own code.
const OWN_TYPE: &str = "
    CREATE FUNCTION own.spring() RETURNS boolean LANGUAGE plpgsql AS
        'BEGIN RAISE EXCEPTION ''sprung as %'', current_user; END';
    CREATE TYPE own.value AS (x int);
    CREATE FUNCTION own.as_text(own.value) RETURNS text LANGUAGE sql AS 'SELECT own.spring()::text';
    CREATE CAST (own.value AS text) WITH FUNCTION own.as_text(own.value) AS IMPLICIT;
";

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_the_callers_own_type_runs_the_callers_own_code_as_the_caller() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let service = role.enter(&database).await;
    service.run(OWN_TYPE).await;
    for call in [
        "hapax.begin('t', 's', 'k', ROW(1)::own.value)",
        "hapax.finish(hapax.operation_id('t', 's', 'k'), 1, body => ROW(1)::own.value)",
        "hapax.fail(hapax.operation_id('t', 's', 'k'), 1, body => ROW(1)::own.value)",
        "hapax.record('t', 's', 'k', ROW(1)::own.value, body => ROW(1)::own.value)",
        "hapax.emit('t', 'k', ROW(1)::own.value)",
        "hapax.first_delivery('c', 'm', ROW(1)::own.value)",
        "hapax.fail_delivery('c', 'm', ROW(1)::own.value)",
    ] {
        let refused = service.refused(&format!("SELECT {call}")).await;
        assert_eq!(refused.message, format!("sprung as {}", role.name), "{call}");
    }
}

/// The same names in a schema that everybody may write, in front of whoever migrates and serves.
#[tokio::test(flavor = "multi_thread")]
async fn what_others_made_in_the_path_of_the_store_is_not_run_by_it() {
    let database = Postgres::empty().await;
    let name = &database.name;
    let prepare = format!(
        "CREATE FUNCTION public.spring(text, integer) RETURNS text LANGUAGE plpgsql AS \
             'BEGIN RAISE EXCEPTION ''sprung as %'', current_user; END'; \
         CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = integer, FUNCTION = public.spring); \
         CREATE FUNCTION public.times(double precision, integer) RETURNS double precision LANGUAGE plpgsql AS \
             'BEGIN RAISE EXCEPTION ''sprung as %'', current_user; END'; \
         CREATE OPERATOR public.* (LEFTARG = double precision, RIGHTARG = integer, FUNCTION = public.times); \
         CREATE FUNCTION public.times(bigint, interval) RETURNS interval LANGUAGE plpgsql IMMUTABLE AS \
             'BEGIN RAISE EXCEPTION ''sprung as %'', current_user; END'; \
         CREATE OPERATOR public.* (LEFTARG = bigint, RIGHTARG = interval, FUNCTION = public.times); \
         ALTER DATABASE {name} SET search_path = public, pg_catalog; \
         ALTER DATABASE {name} SET standard_conforming_strings = off"
    );
    database.client().await.batch_execute(&prepare).await.unwrap();
    let store = database.store().await;
    crate::reference::complete(&store, "key", b"body").await;
    hapax_core::Store::purge(&store, 10).await.unwrap();
    let client = connect(&database.config()).await;
    let caught = client.batch_execute("SELECT 'a'::text || 1").await.map_err(Refusal::from);
    assert!(caught.unwrap_err().message.starts_with("sprung as"));
    let tables = "SELECT count(*) FROM hapax.operations_readable";
    assert_eq!(database.number(tables).await, 1);
    let pay = "SELECT decision FROM hapax.begin('acme', 'POST /pay', 'other', 'request')";
    assert_eq!(client.query_one(pay, &[]).await.unwrap().get::<_, &str>(0), "execute");
}
