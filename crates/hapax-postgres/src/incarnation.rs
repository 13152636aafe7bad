//! Which database this is, what is kept about its past, and which one is spoken to.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hapax_core::{
    Reason, StoreError, Timestamp,
    incarnation::{
        Incarnation, IncarnationChange, IncarnationMark, IncarnationReading, Lifted, LossCause,
        ProcessMark, Quarantine, Remembered,
    },
};
use tokio_postgres::{Client, Error, Row, error::SqlState};

use crate::{
    error::{OpenError, StatementFailure, reading},
    row::column,
    store::Shared,
};

const NOW: &str = "SELECT n.origin, n.timeline FROM hapax.incarnation_now() AS n";
const READ: &str = include_str!("sql/incarnation.sql");
const PROCESSES: &str = include_str!("sql/processes.sql");
const KEEP: &str = include_str!("sql/keep_incarnation.sql");

/// Which incarnation connections may lead to; any, before it was told.
#[derive(Debug, Default)]
pub(crate) struct AdmittedIncarnation(Mutex<Option<Incarnation>>);

impl AdmittedIncarnation {
    pub(crate) fn admit(&self, incarnation: &Incarnation) {
        *self.lock() = Some(incarnation.clone());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Incarnation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a connection may lead.
#[derive(Debug)]
pub(crate) enum LeadsTo {
    /// To any database.
    Any,
    /// To any but an old primary: what the admitted one has followed is not gone back to.
    NothingBefore(Arc<AdmittedIncarnation>),
    /// To the admitted one alone.
    Admitted(Arc<AdmittedIncarnation>),
}

impl LeadsTo {
    /// Where this connection leads, if it may and that matters. To be asked before anything else is sent on it.
    pub(crate) async fn check(&self, client: &Client) -> Result<Option<Incarnation>, OpenError> {
        let admitted = match self {
            Self::Any => return Ok(None),
            Self::NothingBefore(admitted) | Self::Admitted(admitted) => admitted,
        };
        let row = match client.query_one(NOW, &[]).await {
            Err(error) if is_forbidden(&error) && self.is_unbound() => return Ok(None),
            row => row.map_err(OpenError::Unusable)?,
        };
        let origin: &str = row.try_get(0).map_err(OpenError::Unusable)?;
        let timeline = row.try_get(1).map_err(OpenError::Unusable)?;
        let found = Incarnation::new(origin, timeline);
        if self.allows(&found) {
            return Ok(Some(found));
        }
        let admitted = admitted.lock().as_ref().map(Incarnation::to_string).unwrap_or_default();
        Err(OpenError::OtherIncarnation { admitted, found: found.to_string() })
    }

    /// Whether nothing was gone on with that could be gone back from. A role that may not ask where it is admits
    /// nothing, and only looks.
    fn is_unbound(&self) -> bool {
        match self {
            Self::Any => true,
            Self::NothingBefore(admitted) => admitted.lock().is_none(),
            Self::Admitted(_) => false,
        }
    }

    /// Whether a connection that leads there may be used.
    pub(crate) fn allows(&self, found: &Incarnation) -> bool {
        match self {
            Self::Any => true,
            Self::NothingBefore(admitted) => {
                !admitted.lock().as_ref().is_some_and(|admitted| admitted.follows(found))
            }
            Self::Admitted(admitted) => {
                admitted.lock().as_ref().is_none_or(|admitted| admitted == found)
            }
        }
    }
}

fn is_forbidden(error: &Error) -> bool {
    error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE)
}

/// What the database says of itself, and what is kept in it.
pub(crate) async fn read(shared: &Shared) -> Result<IncarnationReading, StoreError> {
    let wire = shared.keeper.wire().await.map_err(reading)?;
    let (rows, processes) = tokio::join!(wire.query(READ, &[]), wire.query(PROCESSES, &[]));
    let (rows, processes) = (rows.map_err(reading)?, processes.map_err(reading)?);
    let row = rows.first().ok_or_else(|| StoreError::unavailable("the incarnation has no row"))?;
    let text = |at| column::<&str>(row, at).map_err(reading);
    Ok(IncarnationReading {
        now: Timestamp::from_micros(column(row, 0).map_err(reading)?),
        incarnation: Incarnation::new(text(1)?, column(row, 2).map_err(reading)?),
        synchronous: column(row, 3).map_err(reading)?,
        mark: mark(row)?,
        remembered: Remembered::NotKept,
        processes: processes.iter().map(process).collect::<Result<_, _>>().map_err(reading)?,
    })
}

/// Keeps this, unless somebody was faster or this is another database.
pub(crate) async fn keep(
    shared: &Shared,
    change: &IncarnationChange,
) -> Result<bool, StatementFailure> {
    let IncarnationChange { expected, mark, present, gone } = change;
    let quarantine = mark.quarantine.as_ref();
    let lifted = mark.lifted.as_ref();
    let wire = shared.keeper.wire().await?;
    let warnings = wire.warnings();
    let rows = wire
        .query(
            KEEP,
            &[
                expected,
                &mark.incarnation.origin(),
                &mark.incarnation.timeline(),
                &mark.position,
                &mark.began,
                &quarantine.map(|quarantine| quarantine.since.as_micros()),
                &quarantine.map(|quarantine| quarantine.cause as i64),
                &quarantine.map(|quarantine| quarantine.before.origin()),
                &quarantine.map(|quarantine| quarantine.before.timeline()),
                &quarantine.map(|quarantine| quarantine.seen_before.as_micros()),
                &lifted.map(|lifted| lifted.at.as_micros()),
                &lifted.map(|lifted| lifted.reason.who()),
                &lifted.map(|lifted| lifted.reason.why()),
                gone,
                &present.as_ref().map(|present| present.process),
                &present.as_ref().map(|present| present.seen_at.as_micros()),
                &present.as_ref().map(|present| present.synchronous),
                &present.as_ref().map(|present| present.vouches),
            ],
        )
        .await?;
    if wire.warnings() != warnings {
        return Err(StatementFailure::unanswered("the server warned while it committed"));
    }
    let kept: i64 = rows.first().map_or(Ok(0), |row| column(row, 0))?;
    Ok(kept > 0)
}

/// What is kept; `None` where nobody ever looked.
fn mark(row: &Row) -> Result<Option<IncarnationMark>, StoreError> {
    let Some(origin) = column::<Option<&str>>(row, 4).map_err(reading)? else { return Ok(None) };
    let number = |at| column::<i64>(row, at).map_err(reading);
    let maybe = |at| column::<Option<i64>>(row, at).map_err(reading);
    let text = |at| column::<Option<&str>>(row, at).map_err(reading);
    let quarantine = match maybe(8)? {
        None => None,
        Some(since) => {
            let unknown = || StoreError::too_new("the cause of the quarantine is not known here");
            let cause = maybe(9)?.and_then(LossCause::from_stored).ok_or_else(unknown)?;
            let before = Incarnation::new(text(10)?.unwrap_or_default(), maybe(11)?.unwrap_or(0));
            let seen_before = Timestamp::from_micros(maybe(12)?.unwrap_or(0));
            let since = Timestamp::from_micros(since);
            Some(Quarantine { since, cause, before, seen_before })
        }
    };
    let lifted = match maybe(13)? {
        None => None,
        Some(at) => {
            let (who, why) = (text(14)?.unwrap_or_default(), text(15)?.unwrap_or_default());
            let reason = Reason::new(who, why).map_err(StoreError::damaged)?;
            Some(Lifted { at: Timestamp::from_micros(at), reason })
        }
    };
    let incarnation = Incarnation::new(origin, number(5)?);
    let (position, began) = (number(6)?, number(7)?);
    Ok(Some(IncarnationMark { incarnation, position, began, quarantine, lifted }))
}

fn process(row: &Row) -> Result<ProcessMark, StatementFailure> {
    Ok(ProcessMark {
        process: column(row, 0)?,
        incarnation: Incarnation::new(column::<&str>(row, 1)?, column(row, 2)?),
        seen_at: Timestamp::from_micros(column(row, 3)?),
        synchronous: column(row, 4)?,
        vouches: column(row, 5)?,
    })
}
