//! A role that may only call the functions: it can do its work, and nothing else.

use std::{
    process,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use hapax_core::{RequestParts, StateTag, Store as _};
use tokio_postgres::Config;

use super::{Service, operation, record, shop};
use crate::backend::{Postgres, connect, server};

/// A role of the whole server, dropped at the end of the test: after the database it has rights in.
pub(crate) struct Role {
    pub(crate) name: String,
}

impl Role {
    pub(crate) async fn create() -> Self {
        static ROLES: AtomicU32 = AtomicU32::new(0);
        let number = ROLES.fetch_add(1, Ordering::Relaxed);
        let name = format!("hapax_test_role_{}_{number}", process::id());
        let text = format!("CREATE ROLE {name} LOGIN PASSWORD 'secret'");
        connect(&server()).await.batch_execute(&text).await.unwrap();
        Self { name }
    }

    /// A connection as this role, which may call the functions.
    pub(crate) async fn enter_beside(&self, database: &Postgres) -> Service {
        let text = format!("SELECT hapax.grant_functions('{}')", self.name);
        database.client().await.batch_execute(&text).await.unwrap();
        self.enter_again(database).await
    }

    /// The same, which also owns schema `own`.
    pub(crate) async fn enter(&self, database: &Postgres) -> Service {
        let name = &self.name;
        let text = format!(
            "SELECT hapax.grant_functions('{name}'); GRANT INSERT, SELECT ON payments TO {name}"
        );
        database.client().await.batch_execute(&text).await.unwrap();
        let text = format!("CREATE SCHEMA own AUTHORIZATION {name}");
        database.superuser().await.batch_execute(&text).await.unwrap();
        self.enter_again(database).await
    }

    /// One more connection as this role.
    pub(crate) async fn enter_again(&self, database: &Postgres) -> Service {
        let mut config: Config = database.config();
        config.user(&self.name).password("secret");
        Service { client: connect(&config).await }
    }

    /// A database that belongs to this role, with our schema and a table `payments`.
    pub(crate) async fn shop(&self) -> Postgres {
        let mut database = Postgres::empty().await;
        let (database_name, name) = (&database.name, &self.name);
        let give = format!("ALTER DATABASE {database_name} OWNER TO {name}");
        connect(&server()).await.batch_execute(&give).await.unwrap();
        database.act_as(name, "secret");
        database.store().await;
        let table = "CREATE TABLE payments (key text NOT NULL, amount integer NOT NULL)";
        database.client().await.batch_execute(table).await.unwrap();
        database
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let text = format!("DROP ROLE {}", self.name);
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async { connect(&server()).await.batch_execute(&text).await })
        });
        let dropped = dropping.join();
        if !thread::panicking() {
            dropped.unwrap().unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_the_functions_alone_can_do_its_work() {
    let role = Role::create().await;
    let (database, store) = shop().await;
    let service = role.enter(&database).await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("SELECT hapax.emit('payment.completed', 'key', '{}')").await;
    let first = "SELECT hapax.first_delivery('mailer', 'message')::int::int8";
    assert_eq!(service.number(first).await, 1);
    assert_eq!(service.number(first).await, 0);
    service.run("COMMIT").await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(false));
    let begun = service.begin("failing").await;
    service.run(&format!("SELECT {}; COMMIT", begun.fail("402"))).await;
    let rows = service
        .client
        .query_typed("SELECT state, status FROM hapax.status('acme', 'POST /pay', 'failing')", &[])
        .await
        .unwrap();
    assert_eq!((rows[0].get::<_, &str>(0), rows[0].get::<_, i32>(1)), ("failed", 402));
    let unknown = "SELECT count(*) FROM hapax.status('acme', 'POST /pay', 'unknown')";
    assert_eq!(service.number(unknown).await, 0);
    assert_eq!(service.number("SELECT count(*) FROM hapax.status(NULL, NULL, NULL)").await, 0);
    service.run("BEGIN").await;
    let begun = service.ask("'acme', 'POST /pay', 'long', retention => '300 days'").await.unwrap();
    service.run(&format!("SELECT {}; COMMIT", begun.finish(""))).await;
    let stored = record(&store, operation("long").id()).await.unwrap();
    assert_eq!(stored.tag(), StateTag::Completed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_with_the_functions_alone_reaches_no_table_and_no_inner_function() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let service = role.enter(&database).await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("SELECT hapax.emit('t', 'k', ''); COMMIT").await;
    let reachable = "SELECT count(*) FROM pg_class AS c WHERE relnamespace = 'hapax'::regnamespace AND CASE relkind \
        WHEN 'S' THEN has_sequence_privilege(oid, 'USAGE, SELECT, UPDATE') \
        WHEN 'i' THEN false WHEN 'I' THEN false \
        ELSE has_table_privilege(oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER') \
             OR has_any_column_privilege(oid, 'SELECT, INSERT, UPDATE, REFERENCES') END";
    assert_eq!(service.number(reachable).await, 0);
    let forbidden = [
        "SELECT * FROM hapax.operations",
        "SELECT * FROM hapax.operations_readable",
        "SELECT salt FROM hapax.meta",
        "SELECT * FROM hapax.outbox",
        "SELECT * FROM hapax.notes",
        "DELETE FROM hapax.operations",
        "UPDATE hapax.meta SET salt = salt",
        "SELECT nextval('hapax.outbox_positions')",
        "CREATE TABLE hapax.mine ()",
        "CREATE FUNCTION hapax.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "SELECT hapax.fingerprint('acme', '', '', '', '')",
        "SELECT hapax.part_hash('', 'acme', 'body', '')",
        "SELECT hapax.mask('', '36')",
        "SELECT hapax.seal_head(200, '{}')",
        "SELECT hapax.open_outcome(gen_random_uuid(), '')",
        "SELECT hapax.decide(1, 1::int2, 1, 1, 1, 1::int2, true)",
        "SELECT hapax.begin_contended(gen_random_uuid(), 1, 1, '', '', '', '', 1, 1, 1)",
        "SELECT hapax.refuse_end(true, gen_random_uuid(), 1, 1, 200, '{}', '')",
        "SELECT hapax.check_tenant('acme')",
        "SELECT hapax.operation_lock('', gen_random_uuid())",
        "SELECT hapax.fingerprint_with('', '', 'acme', '', '', '', '')",
        "SELECT hapax.later_delivery(1, 'm', '', 1)",
        "SELECT hapax.grant_functions(current_user::regrole)",
    ];
    for text in forbidden {
        assert_eq!(service.refused(text).await.code, "42501", "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_without_the_functions_can_call_none() {
    let role = Role::create().await;
    let (database, _store) = shop().await;
    let mut config = database.config();
    config.user(&role.name).password("secret");
    let stranger = Service { client: connect(&config).await };
    for granted in [false, true] {
        if granted {
            let usage = format!("GRANT USAGE ON SCHEMA hapax TO {}", role.name);
            database.client().await.batch_execute(&usage).await.unwrap();
        }
        for call in [
            "hapax.begin('t', 's', 'k')",
            "hapax.finish(gen_random_uuid(), 1)",
            "hapax.fail(gen_random_uuid(), 1)",
            "hapax.record('t', 's', 'k')",
            "hapax.emit('t', 'k', '')",
            "hapax.first_delivery('c', 'm')",
            "hapax.fail_delivery('c', 'm')",
            "hapax.schema_version()",
            "hapax.status('t', 's', 'k')",
            "hapax.operation_id('t', 's', 'k')",
        ] {
            let refused = stranger.refused(&format!("SELECT {call}")).await;
            assert_eq!(refused.code, "42501", "{call}");
        }
    }
}

/// Functions, operators and tables with the names ours use, which note in a table that they ran.
const TRAPS: &str = "
    CREATE TABLE own.sprung (what text);
    CREATE FUNCTION own.sha256(bytea) RETURNS bytea LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('sha256'); RETURN '\\x00'; END $$;
    CREATE FUNCTION own.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('clock'); RETURN '2000-01-01'; END $$;
    CREATE FUNCTION own.substr(bytea, int, int) RETURNS bytea LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('substr'); RETURN '\\x00'; END $$;
    CREATE FUNCTION own.pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('lock'); RETURN true; END $$;
    CREATE FUNCTION own.hashtextextended(text, bigint) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('hash'); RETURN 1; END $$;
    CREATE FUNCTION own.joined(bytea, bytea) RETURNS bytea LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('joined'); RETURN $1; END $$;
    CREATE OPERATOR own.|| (LEFTARG = bytea, RIGHTARG = bytea, FUNCTION = own.joined);
    CREATE FUNCTION own.same(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('same'); RETURN false; END $$;
    CREATE OPERATOR own.= (LEFTARG = uuid, RIGHTARG = uuid, FUNCTION = own.same);
    CREATE FUNCTION own.later(bigint, bigint) RETURNS bigint LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO own.sprung VALUES ('later'); RETURN 0; END $$;
    CREATE OPERATOR own.+ (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = own.later);
    GRANT ALL ON SCHEMA own TO PUBLIC; GRANT ALL ON own.sprung TO PUBLIC;
    CREATE TEMPORARY TABLE operations (id uuid);
    CREATE TEMPORARY TABLE meta (salt bytea);
    CREATE TEMPORARY TABLE outbox (id uuid);
    SET search_path = own, pg_temp, pg_catalog, hapax, public;
";

#[tokio::test(flavor = "multi_thread")]
async fn a_search_path_full_of_traps_changes_nothing() {
    let role = Role::create().await;
    let (database, store) = shop().await;
    let service = role.enter(&database).await;
    service.run(TRAPS).await;
    let before = store.load(vec![operation("none").id()]).await.remove(0).unwrap().now;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("SELECT hapax.emit('t', 'k', 'p'); SELECT hapax.first_delivery('c', 'm')").await;
    service.run("COMMIT").await;
    assert_eq!(service.pay("key").await, Ok(false));
    let status =
        "SELECT count(*) FROM hapax.status('acme', 'POST /pay', 'key') WHERE state = 'completed'";
    assert_eq!(service.number(status).await, 1);
    // The traps do work for whoever walks into them.
    assert_eq!(service.number("SELECT pg_catalog.octet_length(sha256('a'::bytea))::int8").await, 1);
    let sprung = service.client.query_typed("SELECT what FROM own.sprung", &[]).await.unwrap();
    assert_eq!(sprung.iter().map(|row| row.get(0)).collect::<Vec<&str>>(), ["sha256"]);

    let stored = record(&store, operation("key").id()).await.unwrap();
    assert!(stored.created_at >= before && stored.tag() == StateTag::Completed);
    let body = b"{\"amount\": 100}";
    let request = RequestParts { body, ..RequestParts::default() };
    let key = store.salt().tenant_key(stored.operation.tenant());
    assert_eq!(stored.fingerprint, key.fingerprint(&request));
    let delivered = "SELECT count(*) FROM hapax.inbox_readable WHERE state = 'done'";
    assert_eq!(database.number(delivered).await, 1);
    assert_eq!(database.number("SELECT count(*) FROM hapax.outbox").await, 1);
}
