//! The writes of an undisturbed operation, made ready once for many of them.

use hapax_core::{
    Attempt, StateTag, Timestamp,
    codec::{Row, Sealed},
};
use rusqlite::{CachedStatement, Connection, OptionalExtension as _, params};

use crate::{
    key::KeyColumn,
    row::{CLAIM, DROP_OPEN, END, OPEN},
};

/// What runs under a fence and an owner; only what the row itself can vouch for.
const RUNNING: &str = "SELECT c.created_at, c.kept_for, c.request IS NOT NULL \
     FROM hapax_claims AS c JOIN hapax_open AS o ON o.row = c.row \
     WHERE c.row = ?1 AND c.id = ?2 AND c.fence = ?3 AND c.owner = ?4 AND c.format = 1 \
     AND o.state = 2";
/// What has ended needs its request no more.
const DROP_REQUEST: &str = "UPDATE hapax_claims SET request = NULL WHERE row = ?1";

pub(crate) struct HotStatements<'c> {
    connection: &'c Connection,
    claim: CachedStatement<'c>,
    open: CachedStatement<'c>,
    running: CachedStatement<'c>,
    end: CachedStatement<'c>,
    drop_open: CachedStatement<'c>,
}

/// A claim that runs.
pub(crate) struct RunningClaim {
    created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    has_request: bool,
}

impl<'c> HotStatements<'c> {
    pub(crate) fn on(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            claim: connection.prepare_cached(CLAIM)?,
            open: connection.prepare_cached(OPEN)?,
            running: connection.prepare_cached(RUNNING)?,
            end: connection.prepare_cached(END)?,
            drop_open: connection.prepare_cached(DROP_OPEN)?,
        })
    }

    /// Appends a claim that has not ended.
    pub(crate) fn claim(&mut self, number: i64, row: &Row) -> rusqlite::Result<()> {
        self.claim.execute(params![
            number,
            row.id.as_bytes(),
            row.format,
            row.tenant,
            row.scope,
            KeyColumn::of(&row.key),
            row.fingerprint,
            row.fence,
            row.owner,
            row.recovery,
            row.created_at,
            row.changed_at.wrapping_sub(row.created_at),
            row.expires_at.wrapping_sub(row.created_at),
            row.tombstone,
            row.request.as_deref(),
        ])?;
        self.open.execute(params![number, row.state, row.doubt, row.until])?;
        Ok(())
    }

    /// The claim in this row, if it runs under the fence and the owner of this attempt.
    pub(crate) fn running(
        &mut self,
        number: i64,
        attempt: &Attempt,
    ) -> rusqlite::Result<Option<RunningClaim>> {
        let values = params![number, attempt.id.as_bytes(), attempt.fence.get(), attempt.owner.0];
        let claim = self.running.query_row(values, |row| {
            let created_at: i64 = row.get(0)?;
            let expires_at = created_at.wrapping_add(row.get(1)?);
            Ok(RunningClaim {
                created_at: Timestamp::from_micros(created_at),
                expires_at: Timestamp::from_micros(expires_at),
                has_request: row.get(2)?,
            })
        });
        claim.optional()
    }

    /// Appends the end of a claim that runs; says whether it had none.
    pub(crate) fn end(
        &mut self,
        now: Timestamp,
        number: i64,
        claim: &RunningClaim,
        (state, expires_at, outcome): (StateTag, Timestamp, Option<&Sealed>),
    ) -> rusqlite::Result<bool> {
        let since = |at: Timestamp| at.as_micros().wrapping_sub(claim.created_at.as_micros());
        let is_longer = expires_at != claim.expires_at;
        let written = self.end.execute(params![
            number,
            state as i16,
            since(now),
            is_longer.then(|| since(expires_at)),
            outcome.map(|sealed| &*sealed.head),
            outcome.map(|sealed| &*sealed.body),
            outcome.map(|sealed| &sealed.digest[..]),
        ])?;
        if written == 0 {
            return Ok(false);
        }
        self.drop_open.execute([number])?;
        if claim.has_request {
            self.connection.prepare_cached(DROP_REQUEST)?.execute([number])?;
        }
        Ok(true)
    }
}
