//! What the server must have before its log can be followed.

use std::time::Duration;

use super::error::TailError;
use crate::{
    connect::Address,
    connection::{ConnectionSlot, SharedConnection},
    error::StatementFailure,
    row::column,
};

/// The publication that is followed.
pub(super) const PUBLICATION: &str = "hapax_outbox";

/// Inserts alone: a segment is truncated when nobody needs it, and that is nobody's business.
const CREATE: &str = "CREATE PUBLICATION hapax_outbox FOR TABLE hapax.outbox \
                      WITH (publish = 'insert', publish_via_partition_root = true)";
/// A filter of rows is in a column that older servers do not have.
const PUBLISHED: &str = "SELECT p.pubinsert AND p.pubviaroot AND EXISTS (\
         SELECT FROM pg_catalog.pg_publication_tables AS t \
         WHERE t.pubname = p.pubname AND t.schemaname = 'hapax' AND t.tablename = 'outbox' \
           AND to_jsonb(t) ->> 'rowfilter' IS NULL) \
     FROM pg_catalog.pg_publication AS p WHERE p.pubname = 'hapax_outbox'";
const SETTINGS: &str = "SELECT current_setting('wal_level'), current_setting('max_slot_wal_keep_size'), \
         r.rolreplication OR r.rolsuper, session_user::text, current_database()::text \
     FROM pg_catalog.pg_roles AS r WHERE r.rolname = session_user";

/// How long a statement beside the stream may take.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// Declares to the server what is to be streamed (publication `hapax_outbox`); does nothing if that
/// is done.
///
/// To be called once by the owner of schema `hapax`, with the right to create in the database, where
/// the role that follows the log is another one.
pub async fn prepare(address: impl Into<Address>) -> Result<(), TailError> {
    let (wire, _) = ConnectionSlot::new(&address.into(), ANSWER_TIMEOUT).connect().await?;
    publish(&wire).await
}

/// As whom, and where, the stream is asked for.
#[derive(Debug, Clone)]
pub(super) struct StreamIdentity {
    pub(super) role: String,
    pub(super) database: String,
}

/// Refuses a server that writes too little, or would keep too much; makes the publication if told
/// to.
pub(super) async fn check(
    wire: &SharedConnection,
    make: bool,
) -> Result<StreamIdentity, TailError> {
    let rows = wire.query(SETTINGS, &[]).await?;
    let row = rows.first().ok_or_else(|| StatementFailure::unanswered("the role is not there"))?;
    let (found, limit): (String, String) = (column(row, 0)?, column(row, 1)?);
    let identity = StreamIdentity { role: column(row, 3)?, database: column(row, 4)? };
    if found != "logical" {
        return Err(TailError::WalLevel { found });
    }
    if limit == "-1" {
        return Err(TailError::Unlimited);
    }
    if !column::<bool>(row, 2)? {
        return Err(TailError::NotAllowed { role: identity.role });
    }
    match (published(wire).await?, make) {
        (true, _) => {}
        (false, true) => publish(wire).await?,
        (false, false) => return Err(TailError::NoPublication),
    }
    Ok(identity)
}

async fn publish(wire: &SharedConnection) -> Result<(), TailError> {
    if published(wire).await? {
        return Ok(());
    }
    match wire.execute(CREATE).await {
        Ok(()) => Ok(()),
        // Somebody else was faster, perhaps.
        Err(_) if published(wire).await? => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

/// Whether the publication is there, and as it must be.
async fn published(wire: &SharedConnection) -> Result<bool, TailError> {
    match wire.query(PUBLISHED, &[]).await?.first() {
        None => Ok(false),
        Some(row) if column(row, 0)? => Ok(true),
        Some(_) => Err(TailError::PublicationDiffers),
    }
}
