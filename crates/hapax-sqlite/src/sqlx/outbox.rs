use hapax_core::Event;
use sqlx::SqliteConnection;

use crate::outbox::{INSERT, draw_id, headers};

/// Says that something happened, to be published if the transaction commits; returns the event's
/// id. As [`crate::emit`], through `sqlx`.
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
