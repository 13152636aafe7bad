//! Hints that something was emitted: in this process at once, to others by a notification.
//!
//! A notification in the commit would make all commits of the database wait for each other, so it
//! is sent afterwards, at most twenty times a second, from the connection that also listens.

use std::{
    pin::pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hapax_core::outbox::Bell;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};

use crate::{
    connection::{ConnectionSlot, SharedConnection},
    error::StatementFailure,
};

/// The least time between two announcements of one process.
const APART: Duration = Duration::from_millis(50);
/// How long to wait before a lost listener connects again.
const RECONNECT: Duration = Duration::from_secs(1);

const LISTEN: &str = "LISTEN hapax_outbox";
const ANNOUNCE: &str = "SELECT pg_notify('hapax_outbox', $1)";

pub(super) struct Announcer {
    bell: Bell,
    /// Room for one: further rings of the moment are the same ring.
    announce: mpsc::Sender<()>,
    /// What the listener needs; taken by whoever first has a use for it.
    idle: Mutex<Option<AnnouncementListener>>,
}

impl Announcer {
    pub(super) fn new(link: ConnectionSlot, bell: Bell) -> Self {
        let (announce, rings) = mpsc::channel(1);
        let name = format!("{:016x}", fastrand::u64(..));
        let listener = AnnouncementListener { link, name, bell: bell.clone(), rings };
        Self { bell, announce, idle: Mutex::new(Some(listener)) }
    }

    #[cfg(feature = "tail")]
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(super) fn ring(&self) {
        self.listen();
        self.bell.ring();
        let _ = self.announce.try_send(());
    }

    pub(super) async fn rung(&self) {
        self.listen();
        self.bell.rung().await;
    }

    fn listen(&self) {
        let listener = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(listener) = listener {
            tokio::spawn(listener.run());
        }
    }
}

struct AnnouncementListener {
    link: ConnectionSlot,
    /// By which it knows its own announcements.
    name: String,
    bell: Bell,
    rings: mpsc::Receiver<()>,
}

impl AnnouncementListener {
    /// Listens and announces until the outbox is gone.
    async fn run(mut self) {
        while !self.rings.is_closed() {
            if let Ok((wire, notified)) = self.connect().await {
                // What was announced while nobody listened is not known.
                self.bell.ring();
                self.serve(&wire, notified).await;
            } else {
                sleep(RECONNECT).await;
            }
        }
    }

    async fn connect(
        &self,
    ) -> Result<(SharedConnection, mpsc::Receiver<String>), StatementFailure> {
        let (wire, notified) = self.link.connect().await.map_err(StatementFailure::not_sent)?;
        wire.execute(LISTEN).await?;
        Ok((wire, notified))
    }

    /// Ends when the connection does, or the outbox.
    async fn serve(&mut self, wire: &SharedConnection, mut notified: mpsc::Receiver<String>) {
        let mut quiet = pin!(sleep(Duration::ZERO));
        loop {
            tokio::select! {
                payload = notified.recv() => match payload {
                    Some(payload) if payload == self.name => {}
                    Some(_) => self.bell.ring(),
                    None => return,
                },
                () = &mut quiet, if !quiet.is_elapsed() => {}
                ring = self.rings.recv(), if quiet.is_elapsed() => {
                    if ring.is_none() || wire.query(ANNOUNCE, &[&self.name]).await.is_err() {
                        return;
                    }
                    quiet.as_mut().reset(Instant::now() + APART);
                }
            }
        }
    }
}
