//! What every SDK and driver must do alike, on a real PostgreSQL.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    reason = "what a test did not expect ends it"
)]

mod across;
mod deliveries;
mod errors;
mod kills;
mod own;
mod pages;
mod scenarios;
mod world;

use hapax_sdk_tests::Sdk;

/// A test for each driver: all scenarios, one after the other.
macro_rules! drivers {
    ($($sdk:ident $name:ident $driver:literal;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            check(Sdk::$sdk, $driver).await;
        }
    )*};
}

drivers! {
    Python python_psycopg "psycopg";
    Python python_psycopg_async "psycopg-async";
    Python python_asyncpg "asyncpg";
    Python python_sqlalchemy "sqlalchemy";
    Python python_sqlalchemy_async "sqlalchemy-async";
    Python python_django "django";
    Node node_pg "pg";
    Node node_postgres "postgres";
    Node node_prisma "prisma";
    Node node_drizzle "drizzle";
    Node node_knex "knex";
    Node node_typeorm "typeorm";
    Go go_pgx "pgx";
    Go go_database_sql "database-sql";
    Java java_jdbc "jdbc";
    Java java_spring "spring";
}

async fn check(sdk: Sdk, driver: &'static str) {
    if !sdk.is_there() {
        return;
    }
    let world = world::World::new(sdk, driver).await;
    kills::check(&world).await;
    scenarios::check(&world).await;
    deliveries::check(&world).await;
    errors::check(&world).await;
}
