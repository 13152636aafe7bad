use hapax_core::Event;
use sqlx::SqliteConnection;

use crate::outbox::{INSERT, draw_id, headers};

/// Says that something happened, to be published if the transaction commits; returns the event's
/// id. As [`crate::emit`], through `sqlx`.
///
/// ```
/// use hapax_core::Event;
/// use hapax_sqlite::sqlx::{emit, migrate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().create_if_missing(true);
/// # let options = options.filename(directory.path().join("shop.db"));
/// # let pool = sqlx::SqlitePool::connect_with(options).await?;
/// migrate(&pool).await?;
/// let mut transaction = pool.begin().await?;
/// emit(&mut transaction, &Event::new("payments.made", "order-17", "100")?).await?;
/// transaction.commit().await?;
/// # Ok(())
/// # }
/// ```
pub async fn emit(connection: &mut SqliteConnection, event: &Event) -> sqlx::Result<String> {
    let id = draw_id().map_err(|error| sqlx::Error::Encode(error.into()))?;
    sqlx::query(INSERT)
        .bind(&*id)
        .bind(event.topic())
        .bind(event.key())
        .bind(event.payload_type())
        .bind(headers(event))
        .bind(&event.payload()[..])
        .execute(connection)
        .await?;
    Ok(id)
}
