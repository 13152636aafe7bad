use hapax_core::Salt;
use sqlx::{Connection as _, SqliteConnection, SqlitePool};

use crate::{
    error::MigrateError,
    migrate::{IS_THERE, KEEP_SALT, MARK, SALT, STEPS, VERSION, draw_salt, step_after},
};

/// Creates the tables of Hapax in a database of your own, or brings them up to date, and returns
/// the salt for the fingerprints kept there. As [`crate::migrate`], through `sqlx`.
///
/// ```
/// use hapax_sqlite::sqlx::migrate;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().create_if_missing(true);
/// # let options = options.filename(directory.path().join("shop.db"));
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// let salt = migrate(&pool).await?;
/// assert_eq!(migrate(&pool).await?, salt);
/// # Ok(())
/// # }
/// ```
pub async fn migrate(pool: &SqlitePool) -> Result<Salt, MigrateError<sqlx::Error>> {
    let mut connection = pool.acquire().await?;
    while next_step(&mut connection).await?.is_some() {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        if let Some(version) = next_step(&mut transaction).await? {
            sqlx::raw_sql(STEPS[version]).execute(&mut *transaction).await?;
            if version == 0 {
                let salt = draw_salt::<sqlx::Error>()?;
                sqlx::query(KEEP_SALT).bind(&salt[..]).execute(&mut *transaction).await?;
            }
            let version = i64::try_from(version + 1).unwrap_or(i64::MAX);
            sqlx::query(MARK).bind(version).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
    }
    read_salt(&mut connection).await
}

/// The step to take next, `None` if the schema is the newest.
pub(super) async fn next_step(
    connection: &mut SqliteConnection,
) -> Result<Option<usize>, MigrateError<sqlx::Error>> {
    let there: i64 = sqlx::query_scalar(IS_THERE).fetch_one(&mut *connection).await?;
    if there == 0 {
        return Ok(Some(0));
    }
    step_after(sqlx::query_scalar(VERSION).fetch_optional(connection).await?)
}

pub(super) async fn read_salt(
    connection: &mut SqliteConnection,
) -> Result<Salt, MigrateError<sqlx::Error>> {
    let salt: Option<Vec<u8>> = sqlx::query_scalar(SALT).fetch_optional(connection).await?;
    let salt = salt.and_then(|salt| <[u8; 32]>::try_from(salt).ok());
    salt.map(Salt::from_bytes).ok_or(MigrateError::Damaged { missing: "salt" })
}

impl From<sqlx::Error> for MigrateError<sqlx::Error> {
    fn from(source: sqlx::Error) -> Self {
        Self::Sqlite(source)
    }
}
