//! Answering a look from what was streamed.

use std::{sync::Arc, sync::atomic::Ordering, time::Duration};

use hapax_core::{
    StoreError, Timestamp,
    outbox::{Look, OutboxLog as _, Position, Seen, Topics},
};
use tokio::time::{sleep, timeout};

use super::{Tail, snapshot::Snapshot, window::WindowView};
use crate::{connection::SharedConnection, error::reading, row::column};

const PRESENT: &str = include_str!("../sql/outbox_present.sql");

/// When to look again for what has come and is not visible yet: its commit is about to end.
const EARLY: Duration = Duration::from_millis(2);

/// What the server says of itself and of a destination, in one snapshot.
struct ServerPosition {
    now: Timestamp,
    topics: Topics,
    /// Whether anything is parked for the destination: that is for the table to sort out.
    parked: bool,
    snapshot: Snapshot,
    /// Every commit that is on disk and in the snapshot is before this,
    flushed: u64,
    /// and every other one in the snapshot before this.
    inserted: u64,
    /// Whether it is the server that streams.
    same_server: bool,
}

/// What the window said.
struct WindowAnswer {
    shown: WindowView,
    below: Vec<(Position, Position)>,
}

impl Tail {
    /// The answer of the stream; `None` if the table must be asked.
    pub(super) async fn look_at_stream(
        &self,
        destination: &str,
        look: &Look,
    ) -> Result<Option<Seen>, StoreError> {
        let current = self
            .live
            .current(|current| current.window.reaches(look).then(|| Arc::clone(&current.slot)));
        let Some(slot) = current.flatten() else { return Ok(None) };
        let wire = self.outbox.reader().await?;
        let Some(present) = present(&wire, destination, &slot).await? else { return Ok(None) };
        if present.parked || !present.same_server {
            return Ok(None);
        }
        let answered = self.wait_and_show(&slot, &present, look).await;
        let Some(WindowAnswer { shown, below }) = answered else { return Ok(None) };
        if shown.early {
            let bell = self.live.bell().clone();
            tokio::spawn(async move {
                sleep(EARLY).await;
                bell.ring();
            });
        }
        if !below.is_empty()
            && let Some(seen) = self.look_below(destination, look, below).await?
        {
            return Ok((seen.session == wire.number()).then_some(seen));
        }
        self.live.stream_looks.fetch_add(1, Ordering::Relaxed);
        Ok(Some(Seen {
            now: present.now,
            session: wire.number(),
            rows: shown.rows,
            complete: shown.complete,
            replay: Vec::new(),
        }))
    }

    /// Waits until the stream has come to the present, for as long as that is worth it.
    async fn wait_and_show(
        &self,
        slot: &Arc<str>,
        present: &ServerPosition,
        look: &Look,
    ) -> Option<WindowAnswer> {
        let mut progress = self.live.progress();
        if look.decides {
            // A disk may have to be waited for, and the table need not.
            let through = progress.borrow().through;
            return (through >= present.inserted).then(|| self.show(slot, present, look)).flatten();
        }
        let there = progress.wait_for(|progress| {
            progress.slot.as_ref() != Some(slot) || progress.through >= present.flushed
        });
        if timeout(self.options.patience, there).await.is_ok() {
            return self.show(slot, present, look);
        }
        // It comes late, but it comes: what is there is older than the call, and all of it true.
        let mut answer = self.show(slot, present, look)?;
        if answer.shown.rows.is_empty() {
            self.live.fell_behind(slot, present.flushed);
            return None;
        }
        answer.shown.complete = false;
        Some(answer)
    }

    fn show(&self, slot: &Arc<str>, present: &ServerPosition, look: &Look) -> Option<WindowAnswer> {
        let shown = self.live.current(|current| {
            // Meanwhile it may be another stream, or have let go of what is asked for.
            let serves = current.slot == *slot && current.window.reaches(look);
            serves.then(|| WindowAnswer {
                shown: current.window.show(look, &present.topics, &present.snapshot),
                below: current.window.below(look),
            })
        });
        shown.flatten()
    }

    /// What the table shows of gaps the window does not reach; `None` if that is nothing.
    ///
    /// It is asked after the window: then it shows the earlier events of every key the window
    /// showed. What it shows is shown alone, and the rest with the next look.
    async fn look_below(
        &self,
        destination: &str,
        look: &Look,
        gaps: Vec<(Position, Position)>,
    ) -> Result<Option<Seen>, StoreError> {
        let below = Look { until: look.after, gaps, late: Vec::new(), ..look.clone() };
        let seen = self.outbox.look(destination, below).await?;
        let found = seen.filter(|seen| !seen.rows.is_empty() || !seen.replay.is_empty());
        if found.is_some() {
            self.live.table_looks.fetch_add(1, Ordering::Relaxed);
        }
        Ok(found.map(|seen| Seen { complete: false, ..seen }))
    }
}

async fn present(
    wire: &SharedConnection,
    destination: &str,
    slot: &str,
) -> Result<Option<ServerPosition>, StoreError> {
    let rows = wire.query(PRESENT, &[&destination, &slot]).await.map_err(reading)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let topics: Vec<String> = column(row, 1)?;
    let snapshot = Snapshot::parse(column(row, 3)?);
    let place = |place: i64| u64::try_from(place).unwrap_or(0);
    Ok(Some(ServerPosition {
        now: Timestamp::from_micros(column(row, 0)?),
        topics: Topics::parse(topics).map_err(StoreError::damaged)?,
        parked: column(row, 2)?,
        snapshot: snapshot.ok_or_else(|| StoreError::damaged("a snapshot is not one"))?,
        flushed: place(column(row, 4)?),
        inserted: place(column(row, 5)?),
        same_server: column(row, 6)?,
    }))
}
