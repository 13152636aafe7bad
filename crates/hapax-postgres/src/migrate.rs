//! The schema, brought up to date by whoever comes first.
//!
//! Each migration runs in one transaction under an advisory lock: runs at the same time wait for
//! each other, and an interrupted one leaves nothing behind. The rule for writing one: *expand*
//! (add what the new code needs; the old code keeps working), *migrate* the data, and *contract*
//! only one release later. `works_with` in `hapax.meta` says how old the code may be.

use hapax_core::Salt;
use tokio_postgres::Client;

use crate::{connect::Address, error::OpenError, server};

/// The schema version this code is written for.
pub const VERSION: i32 = 13;

/// The version of the first migration. Those before it were never released, and are not upgraded.
const FIRST: i32 = 10;
/// Every migration, and the version it leads to.
const MIGRATIONS: &[(i32, &str)] = &[
    (FIRST, BASELINE),
    (11, include_str!("../migrations/0011_tending.sql")),
    (12, include_str!("../migrations/0012_tenant_keys.sql")),
    (13, include_str!("../migrations/0013_incarnation.sql")),
];

const BASELINE: &str = concat!(
    include_str!("../migrations/baseline/01_common.sql"),
    include_str!("../migrations/baseline/02_operations.sql"),
    include_str!("../migrations/baseline/03_tenants.sql"),
    include_str!("../migrations/baseline/04_digests.sql"),
    include_str!("../migrations/baseline/04_transactions.sql"),
    include_str!("../migrations/baseline/05_outbox.sql"),
    include_str!("../migrations/baseline/06_inbox.sql"),
    include_str!("../migrations/baseline/07_natural.sql"),
    include_str!("../migrations/baseline/08_grants.sql"),
);

const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('hapax.migrate'))";

/// Names mean what they mean in PostgreSQL, whatever others made in the schemas of a session's path,
/// and a backslash in a literal is a backslash.
const SETTINGS: &str =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL standard_conforming_strings = on";

const CREATE: &str = "CREATE SCHEMA IF NOT EXISTS hapax";

/// Checks that this code can work with the schema, bringing it up to date first if told to, and
/// returns its salt.
pub(crate) async fn open(address: &Address, migrate: bool) -> Result<Salt, OpenError> {
    let mut client = server::enter(address).await?;
    if migrate {
        run(&mut client).await?;
    }
    salt(&client).await
}

/// The version of the schema in this database; zero where there is none. Changes nothing.
///
/// ```no_run
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let address: hapax_postgres::Address = "postgres://app@localhost/shop".parse()?;
/// if hapax_postgres::schema_version(&address).await? < hapax_postgres::VERSION {
///     println!("run `hapax migrate` first");
/// }
/// # Ok(())
/// # }
/// ```
pub async fn schema_version(address: impl Into<Address>) -> Result<i32, OpenError> {
    let client = server::enter(&address.into()).await?;
    Ok(found(&client).await?.version)
}

/// What brings a schema of this version up to date, as SQL for somebody else to run.
///
/// ```
/// let everything = hapax_postgres::script(0);
/// assert!(everything.starts_with("BEGIN;"));
/// assert_eq!(hapax_postgres::script(hapax_postgres::VERSION), "");
/// ```
pub fn script(from: i32) -> String {
    let pending = MIGRATIONS.iter().filter(|(version, _)| *version > from);
    pending
        .map(|(_, text)| format!("BEGIN;\n{SETTINGS};\n{LOCK};\n{CREATE};\n{text}COMMIT;\n"))
        .collect()
}

async fn run(client: &mut Client) -> Result<(), OpenError> {
    for &(version, text) in MIGRATIONS {
        let failed = |source| OpenError::Migration { version, source };
        let transaction = client.transaction().await.map_err(OpenError::Unusable)?;
        transaction.batch_execute(SETTINGS).await.map_err(failed)?;
        transaction.batch_execute(LOCK).await.map_err(failed)?;
        if found(transaction.client()).await?.version >= version {
            continue;
        }
        transaction.batch_execute(CREATE).await.map_err(failed)?;
        transaction.batch_execute(text).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
    }
    Ok(())
}

async fn salt(client: &Client) -> Result<Salt, OpenError> {
    let FoundSchema { version, works_with } = found(client).await?;
    if works_with > VERSION {
        return Err(OpenError::TooNew { found: version, needed: works_with });
    }
    if version < VERSION {
        return Err(OpenError::NotMigrated { found: version });
    }
    let row = client.query_one("SELECT salt FROM hapax.meta", &[]).await;
    let row = row.map_err(OpenError::Unusable)?;
    let salt: &[u8] = row.try_get(0).map_err(OpenError::Unusable)?;
    salt.try_into().map(Salt::from_bytes).map_err(|_| OpenError::DamagedSalt)
}

struct FoundSchema {
    version: i32,
    works_with: i32,
}

async fn found(client: &Client) -> Result<FoundSchema, OpenError> {
    let exists = client.query_one("SELECT to_regclass('hapax.meta') IS NOT NULL", &[]).await;
    if !exists.and_then(|row| row.try_get(0)).map_err(OpenError::Unusable)? {
        return Ok(FoundSchema { version: 0, works_with: 0 });
    }
    let row = client.query_opt("SELECT version, works_with FROM hapax.meta", &[]).await;
    let Some(row) = row.map_err(OpenError::Unusable)? else {
        return Ok(FoundSchema { version: 0, works_with: 0 });
    };
    let column = |at| row.try_get(at).map_err(OpenError::Unusable);
    let schema = FoundSchema { version: column(0)?, works_with: column(1)? };
    if (1..FIRST).contains(&schema.version) {
        return Err(OpenError::NeverReleased { found: schema.version });
    }
    Ok(schema)
}
