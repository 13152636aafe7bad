//! What was emitted.

use std::path::Path;

use hapax::limits::{OUTBOX_LANES, PAGE_RECORDS_MAX};
use hapax_core::outbox::{
    Look, OutboxAdmin, OutboxLog, ParkedPage, Position, ReadLimits, Selection,
};
use hapax_messaging::audit::{Audit, Emitted, Excuse};

use super::{
    error::AuditError,
    lines::{self, ReadLine},
};
use crate::store::{Access, AnyOutbox, StoreAddress, open_outbox};

/// Everything the outbox keeps for this destination, and why it may not have arrived.
pub(super) async fn from_outbox(
    audit: &mut Audit,
    store: &str,
    name: &str,
) -> Result<(), AuditError> {
    let address: StoreAddress = store.parse()?;
    let outbox = open_outbox(&address, Access::Look).await?.ok_or(AuditError::Memory)?;
    // How far each lane was before anything else is looked at: what lies below has been sent.
    let lag = outbox.lag(name).await?;
    let lag = lag.ok_or_else(|| AuditError::Unknown { name: name.to_owned() })?;
    let mut lows = [0; OUTBOX_LANES as usize];
    for lane in &lag.lanes {
        lows[lane.lane.index()] = lane.low;
    }
    read_log(audit, &outbox, name, &lows).await?;
    read_parked(audit, &outbox, name).await
}

async fn read_log(
    audit: &mut Audit,
    outbox: &AnyOutbox,
    name: &str,
    lows: &[Position; OUTBOX_LANES as usize],
) -> Result<(), AuditError> {
    let mut after = 0;
    loop {
        let look = Look {
            after,
            until: Position::MAX,
            gaps: Vec::new(),
            late: Vec::new(),
            lanes: [Some(0); OUTBOX_LANES as usize],
            decides: true,
            limits: ReadLimits::default(),
        };
        let seen = outbox.look(name, look).await?;
        let seen = seen.ok_or_else(|| AuditError::Unknown { name: name.to_owned() })?;
        for row in &seen.rows {
            after = row.position;
            let Some(event) = &row.event else { continue };
            audit.emitted(Emitted::from(event));
            if row.position > lows[event.lane.index()] {
                audit.excuse(event.id, Excuse::Waiting);
            }
        }
        if seen.complete || seen.rows.is_empty() {
            return Ok(());
        }
    }
}

async fn read_parked(audit: &mut Audit, outbox: &AnyOutbox, name: &str) -> Result<(), AuditError> {
    let mut after = 0;
    loop {
        let page = ParkedPage { after, limit: PAGE_RECORDS_MAX };
        let parked = outbox.parked(name, Selection::All, page).await?;
        let Some(last) = parked.last() else { return Ok(()) };
        after = last.event.position;
        for parked in &parked {
            audit.emitted(Emitted::from(&parked.event));
            audit.excuse(parked.event.id, Excuse::Parked);
        }
    }
}

/// What a file says, in the order in which it says it.
pub(super) fn from_file(audit: &mut Audit, path: &Path) -> Result<(), AuditError> {
    let (mut position, mut unreadable) = (0, 0);
    let mut known = std::collections::HashSet::new();
    lines::read(path, |line| match line {
        ReadLine::Event { id, topic, key } => {
            position += 1;
            // A relay that died wrote some of them twice.
            if known.insert(id) {
                audit.emitted(Emitted { id, position, topic, key });
            }
        }
        ReadLine::Unreadable => unreadable += 1,
    })?;
    match (position, unreadable) {
        (_, 1..) => Err(AuditError::NotEvents { path: path.to_owned(), lines: unreadable }),
        (0, 0) => Err(AuditError::NothingEmitted { path: path.to_owned() }),
        (_, _) => Ok(()),
    }
}
