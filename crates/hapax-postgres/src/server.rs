//! Whether a server can be used at all, found out by trying, with two sessions, once.
//!
//! What speaks PostgreSQL's protocol need not be PostgreSQL, and what is in between need not hand every
//! session through. Both would be noticed later, one request at a time.

use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Client, Error, SimpleQueryMessage, SimpleQueryRow, error::SqlState};

use crate::{connect::Address, connection::refuse_read_only, error::OpenError};

/// The oldest major version of PostgreSQL that can be used.
pub(crate) const SERVER_MIN: u32 = 14;
/// How often two sessions are compared: others may use the same pooler at the same moment.
const ROUNDS: u32 = 3;
/// How long a session may take to answer while another has a transaction open. A pooler whose
/// connections are all in use would have it wait for one.
const ANSWER_MAX: Duration = Duration::from_secs(5);

const LOOK: &str = "SELECT pg_catalog.pg_backend_pid(), \
                    pg_catalog.current_setting('server_version_num')";

/// A session on a server that can be used, and to which it belongs alone.
pub(crate) async fn enter(address: &Address) -> Result<Client, OpenError> {
    let first = connect(address).await?;
    // Not prepared, here and below: a pooler might run the statement where nobody has prepared it.
    let looked = row(&first, LOOK).await.map_err(OpenError::Unusable)?;
    let (Some(session), Some(version)) = (looked.pid, looked.rest) else {
        return Err(OpenError::Pooled(None));
    };
    let found = version.parse::<u32>().unwrap_or_default() / 10_000;
    if found < SERVER_MIN {
        return Err(OpenError::TooOld { found });
    }
    let second = connect(address).await?;
    for _ in 0..ROUNDS {
        compare(&first, &second, &session).await?;
    }
    refuse_read_only(&first).await?;
    Ok(first)
}

/// Has the second session take a lock in a transaction, and the first, which must be who it was, try to.
async fn compare(first: &Client, second: &Client, session: &str) -> Result<(), OpenError> {
    let number = fastrand::i64(..);
    let lock = format!(
        "SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_try_advisory_xact_lock({number})"
    );
    second.batch_execute("BEGIN").await.map_err(refused)?;
    let taken = row(second, &lock).await.map_err(refused)?;
    let tried = timeout(ANSWER_MAX, row(first, &lock)).await;
    let tried = tried.map_err(|_| OpenError::Pooled(None))?.map_err(refused)?;
    second.batch_execute("ROLLBACK").await.map_err(refused)?;
    if tried.pid.as_deref() != Some(session) || taken.pid.as_deref() == Some(session) {
        return Err(OpenError::Pooled(None));
    }
    let answers = (taken.rest.as_deref(), tried.rest.as_deref());
    if answers == (Some("t"), Some("f")) { Ok(()) } else { Err(OpenError::NoLocks(None)) }
}

/// What a refusal of these simple statements means.
fn refused(error: Error) -> OpenError {
    match error.code() {
        // PgBouncer in statement mode allows no transaction, and says so in these words.
        Some(code) if *code == SqlState::PROTOCOL_VIOLATION => OpenError::Pooled(Some(error)),
        Some(code) if *code == SqlState::FEATURE_NOT_SUPPORTED => OpenError::NoLocks(Some(error)),
        Some(_) | None => OpenError::Unusable(error),
    }
}

async fn connect(address: &Address) -> Result<Client, OpenError> {
    let (client, connection) = address.connect().await?;
    tokio::spawn(connection);
    Ok(client)
}

/// A session's number and whatever else was asked for.
#[derive(Default)]
struct SessionAnswer {
    pid: Option<String>,
    rest: Option<String>,
}

/// The row that a statement answers with, in the simple protocol.
async fn row(client: &Client, text: &str) -> Result<SessionAnswer, Error> {
    let messages = client.simple_query(text).await?;
    let row = messages.iter().find_map(|message| {
        let SimpleQueryMessage::Row(row) = message else { return None };
        Some(row)
    });
    let column = |row: &SimpleQueryRow, at| row.try_get(at).ok().flatten().map(str::to_owned);
    Ok(row
        .map(|row| SessionAnswer { pid: column(row, 0), rest: column(row, 1) })
        .unwrap_or_default())
}
