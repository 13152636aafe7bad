//! Reading the log.

use hapax_core::{
    StoreError, Timestamp,
    outbox::{Lane, Look, Position, Seen, SeenRow, Stored, Topics},
};
use rusqlite::{Connection, params};

use super::{
    destinations::topics,
    parked,
    row::{event, event_columns},
};

/// What is visible of what was asked for. The connection reads one snapshot.
pub(super) fn look(
    connection: &Connection,
    now: Timestamp,
    destination: &str,
    look: &Look,
) -> rusqlite::Result<Result<Option<Seen>, StoreError>> {
    let wanted = match topics(connection, destination)? {
        Some(Ok(topics)) => topics,
        Some(Err(error)) => return Ok(Err(error)),
        None => return Ok(Ok(None)),
    };
    let mut sight = Sight { rows: Vec::new(), bytes: 0, complete: true };
    let ranges = look.gaps.iter().copied();
    for (first, last) in ranges.chain([(look.after.saturating_add(1), look.until)]) {
        if let Err(error) = sight.take(connection, destination, &wanted, look, (first, last))? {
            return Ok(Err(error));
        }
    }
    let replay = parked::replaying(connection, destination, look)?;
    let Sight { rows, complete, .. } = sight;
    Ok(replay.map(|replay| Some(Seen { now, session: 0, rows, complete, replay })))
}

struct Sight {
    rows: Vec<SeenRow>,
    bytes: usize,
    complete: bool,
}

impl Sight {
    /// Takes what is visible in this range, up to the limits.
    fn take(
        &mut self,
        connection: &Connection,
        destination: &str,
        topics: &Topics,
        look: &Look,
        (first, last): (Position, Position),
    ) -> rusqlite::Result<Result<(), StoreError>> {
        let mut statement = connection.prepare_cached(concat!(
            "SELECT ",
            event_columns!(),
            " FROM hapax_outbox WHERE position BETWEEN ?1 AND ?2 ORDER BY position"
        ))?;
        let mut found = statement.query(params![first, last])?;
        while self.complete
            && let Some(row) = found.next()?
        {
            if self.rows.len() >= look.limits.rows || self.bytes >= look.limits.bytes {
                self.complete = false;
                break;
            }
            let position = row.get(0)?;
            let (topic, key) = (row.get_ref(4)?.as_str()?, row.get_ref(5)?.as_str()?);
            let wanted = look.wants(Lane::of(topic, key), position)
                && topics.wants(topic)
                && !parked::is_parked(connection, destination, position)?;
            if !wanted {
                self.rows.push(SeenRow { position, event: None, held: false });
                continue;
            }
            let held = parked::holds(connection, destination, topic, key)?.is_some();
            let event = match event(row)? {
                Ok(event) => event,
                Err(error) => return Ok(Err(error)),
            };
            self.bytes += Stored::weight(&event);
            self.rows.push(SeenRow { position, event: Some(event), held });
        }
        Ok(Ok(()))
    }
}
