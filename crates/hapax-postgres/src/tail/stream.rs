//! The task that follows the server's log, and begins again whenever that ends.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hapax_core::{OneLine, outbox::Position, retry::Schedule};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::{
    TailOptions,
    live_window::Live,
    pgoutput::{Decoder, StreamMessage},
    prepare::{self, PUBLICATION, StreamIdentity},
    snapshot::widen,
    socket::{Frame, Socket},
    stream_end::StreamEnd,
};
use crate::{connect::Address, connection::ConnectionSlot, row::column};

/// How long the server may take to let us in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the server may take to begin: it waits for every transaction that was running.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// How often the server is told that it need keep nothing for us.
const CONFIRM_EVERY: Duration = Duration::from_secs(1);
/// So many heartbeats must have been missed before a silent stream is given up.
const SILENT_HEARTBEATS: u32 = 3;

/// Positions above this one are taken after the slot was made, so they commit after it, too.
const ORIGIN: &str = "SELECT coalesce(pg_sequence_last_value('hapax.outbox_positions'), 0), \
         pg_snapshot_xmax(pg_current_snapshot())::text::bigint, \
         EXISTS (SELECT FROM pg_catalog.pg_replication_slots AS s WHERE s.slot_name = $1::text)";
/// In a transaction, because a message outside of one is not written to disk by itself.
const HEARTBEAT: &str = "SELECT pg_logical_emit_message(true, 'hapax', $1)";
const MEASURE: &str = "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint, \
         coalesce(pg_current_wal_flush_lsn() - s.restart_lsn, 0)::bigint, \
         pg_snapshot_xmax(pg_current_snapshot())::text::bigint \
     FROM pg_catalog.pg_replication_slots AS s WHERE s.slot_name = $1::text";

/// What following takes.
pub(super) struct Follower {
    pub(super) address: Address,
    /// For statements beside the stream.
    pub(super) link: ConnectionSlot,
    pub(super) options: TailOptions,
    pub(super) live: Arc<Live>,
    /// A transaction of late: the stream names only the last half of each.
    pub(super) near: AtomicU64,
}

impl Follower {
    /// Follows until it is dropped.
    pub(super) async fn run(self) {
        let schedule = Schedule::default().until_deadline();
        let (mut attempt, mut pause) = (0, Duration::ZERO);
        loop {
            let began = Instant::now();
            let Err(ended) = self.follow().await;
            let cause = OneLine::of(&ended).to_string();
            self.live.end(&cause);
            // Whoever waited for the stream looks at the table instead.
            self.live.bell().ring();
            attempt = if began.elapsed() > self.options.heartbeat_every { 1 } else { attempt + 1 };
            pause = schedule.pause(attempt, pause, fastrand::u64(..)).unwrap_or(pause);
            tracing::warn!(cause, ?pause, "the outbox is read from its table: the stream ended");
            sleep(pause).await;
        }
    }

    async fn follow(&self) -> Result<Infallible, StreamEnd> {
        let wire = self.link.wire().await?;
        let identity = prepare::check(&wire, self.options.prepare).await?;
        let connecting = Socket::connect(&self.address, &identity);
        let mut socket = timeout(CONNECT_TIMEOUT, connecting).await??;
        let slot: Arc<str> = format!("hapax_{:016x}", fastrand::u64(..)).into();
        // It goes with the connection, whatever becomes of this process.
        let create = format!(
            "CREATE_REPLICATION_SLOT \"{slot}\" TEMPORARY LOGICAL pgoutput NOEXPORT_SNAPSHOT"
        );
        let made = timeout(BEGIN_TIMEOUT, socket.command(&create)).await??;
        let consistent = made.get(1).and_then(|place| lsn(place));
        let consistent = consistent.ok_or(StreamEnd::Garbled("the slot begins nowhere"))?;
        let floor = self.origin(&slot).await?;
        let start = format!(
            "START_REPLICATION SLOT \"{slot}\" LOGICAL 0/0 (proto_version '1', \
             publication_names '{PUBLICATION}', binary 'true', messages 'true')"
        );
        timeout(CONNECT_TIMEOUT, socket.start(&start)).await??;
        self.live.begin(&slot, floor, consistent);
        self.live.bell().ring();
        let StreamIdentity { role, database } = &identity;
        tracing::info!(%slot, role, database, "the outbox is followed");
        tokio::select! {
            ended = self.receive(&mut socket) => ended,
            ended = self.heartbeat(&slot) => ended,
        }
    }

    async fn origin(&self, slot: &str) -> Result<Position, StreamEnd> {
        let rows = self.link.wire().await?.query(ORIGIN, &[&slot]).await?;
        let row = rows.first().ok_or(StreamEnd::Elsewhere)?;
        if !column::<bool>(row, 2)? {
            return Err(StreamEnd::Elsewhere);
        }
        self.passed(u64::try_from(column::<i64>(row, 1)?).unwrap_or(0));
        Ok(column(row, 0)?)
    }

    /// Takes what the server sends. Nothing makes it wait: what there is no room for stays in the
    /// table, so a slow destination never makes the server keep its log.
    async fn receive(&self, socket: &mut Socket) -> Result<Infallible, StreamEnd> {
        let (mut decoder, mut taken) = (Decoder::default(), StreamIntake::default());
        let silence = self.options.heartbeat_every * SILENT_HEARTBEATS;
        let (mut heard, mut confirmed, mut clock) = (Instant::now(), (Instant::now(), 0), 0);
        loop {
            let frame = tokio::select! {
                biased;
                frame = socket.frame() => Some(frame?),
                () = sleep_until(confirmed.0 + CONFIRM_EVERY) => None,
            };
            let mut answer = false;
            match frame {
                Some(Frame::Data(message)) => {
                    heard = Instant::now();
                    self.take(decoder.read(&message)?, &mut taken);
                }
                Some(Frame::Through { end, clock: told, answer: wanted }) => {
                    (heard, clock, answer) = (Instant::now(), told, wanted);
                    taken.through = taken.through.max(end);
                    self.live.advance(end);
                }
                None if heard.elapsed() > silence => return Err(StreamEnd::Silent),
                None => {}
            }
            let due = confirmed.0.elapsed() >= CONFIRM_EVERY;
            if answer || (due && taken.through > confirmed.1) {
                socket.confirm(taken.through, clock).await?;
            }
            if answer || due {
                confirmed = (Instant::now(), taken.through);
            }
        }
    }

    fn take(&self, change: StreamMessage, taken: &mut StreamIntake) {
        match change {
            StreamMessage::Begin { xid } => {
                taken.xid = widen(xid, self.near.load(Ordering::Relaxed));
                self.passed(taken.xid);
                taken.events = false;
            }
            StreamMessage::Event(event) => {
                taken.events = true;
                self.live.keep(event, taken.xid);
            }
            StreamMessage::Unreadable(position) => {
                taken.events = true;
                self.live.leave(position);
            }
            StreamMessage::Commit { end } => {
                taken.through = taken.through.max(end);
                self.live.advance(end);
                if taken.events {
                    self.live.bell().ring();
                }
            }
            StreamMessage::Other => {}
        }
    }

    /// Sends a sign of life through the server's log, and measures how far the stream is behind.
    async fn heartbeat(&self, slot: &str) -> Result<Infallible, StreamEnd> {
        let mut alarmed = false;
        loop {
            match self.beat(slot).await {
                Ok(most) => {
                    let alarming = most > self.options.alarm_bytes;
                    if alarming && !alarmed {
                        tracing::warn!(
                            bytes = most,
                            "the server keeps much of its log for the stream of the outbox"
                        );
                    }
                    alarmed = alarming;
                }
                // The stream itself says whether it is lost; a missing sign of life shows as silence.
                Err(error) => tracing::debug!(%error, "a heartbeat failed"),
            }
            sleep(self.options.heartbeat_every).await;
        }
    }

    /// The larger of how far the stream is behind, and how much is kept for it.
    async fn beat(&self, slot: &str) -> Result<u64, StreamEnd> {
        let wire = self.link.wire().await?;
        wire.query(HEARTBEAT, &[&slot]).await?;
        let rows = wire.query(MEASURE, &[&slot]).await?;
        let row = rows.first().ok_or(StreamEnd::Elsewhere)?;
        let bytes = |at| Ok::<_, StreamEnd>(u64::try_from(column::<i64>(row, at)?).unwrap_or(0));
        let lag = bytes(0)?.saturating_sub(self.live.progress().borrow().through);
        let kept = bytes(1)?;
        self.passed(bytes(2)?);
        self.live.lag_bytes.store(lag, Ordering::Relaxed);
        self.live.kept_bytes.store(kept, Ordering::Relaxed);
        Ok(lag.max(kept))
    }

    fn passed(&self, xid: u64) {
        self.near.fetch_max(xid, Ordering::Relaxed);
    }
}

/// What was taken so far.
#[derive(Default)]
struct StreamIntake {
    through: u64,
    /// Of the transaction whose inserts come.
    xid: u64,
    events: bool,
}

/// Reads a place in the server's log: `16/B374D848`.
fn lsn(text: &str) -> Option<u64> {
    let (high, low) = text.split_once('/')?;
    let part = |text| u64::from_str_radix(text, 16).ok();
    Some((part(high)? << 32) | part(low)?)
}
