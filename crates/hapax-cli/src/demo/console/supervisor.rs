//! Keeps the gateway up: kills it when asked to, and starts it again however it ended.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hapax::{OperationId, Timestamp};
use serde::Serialize;
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    task::block_in_place,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{keys::KeyReader, refusal::ActionRefusal};
use crate::demo::{error::DemoError, gateway::DemoGateway, traffic::now};

/// How long it stays down, so that people can see what that is like.
const DOWN_FOR: Duration = Duration::from_secs(2);
/// How often it is tried to start it before it is left alone.
const STARTS_MAX: u32 = 5;
/// How often it is looked at: somebody else may kill it too.
const LOOKED_AT_EVERY: Duration = Duration::from_millis(500);
/// Most kills that are remembered.
const KILLS_MAX: usize = 8;

/// Whoever has the gateway's lock is about to end it or to start it.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) address: SocketAddr,
    gateway: Arc<AsyncMutex<DemoGateway>>,
    status: Mutex<GatewayStatus>,
    kills: Mutex<VecDeque<Kill>>,
    keys: KeyReader,
    /// Removed after the gateway, which has its files there.
    _directory: TempDir,
}

/// Whether the gateway runs.
#[derive(Debug, Clone)]
pub(super) enum GatewayStatus {
    Up {
        pid: u32,
        since: Timestamp,
    },
    Down {
        since: Timestamp,
    },
    /// It did not start again.
    Lost {
        why: Arc<DemoError>,
    },
}

/// One end of the gateway.
#[derive(Debug, Clone)]
pub(super) struct Kill {
    pub(super) at: Timestamp,
    pub(super) pid: u32,
    pub(super) by: KilledBy,
    /// What its file says was running then; `None` until that is read.
    pub(super) left: Option<Vec<OperationId>>,
    pub(super) back_at: Option<Timestamp>,
}

/// Who killed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KilledBy {
    You,
    Storm,
    /// Nobody on this page.
    SomebodyElse,
}

impl Supervisor {
    pub(super) fn new(gateway: DemoGateway, keys: KeyReader, directory: TempDir) -> Self {
        let status = GatewayStatus::Up { pid: gateway.pid(), since: now() };
        Self {
            address: gateway.address,
            gateway: Arc::new(AsyncMutex::new(gateway)),
            status: Mutex::new(status),
            kills: Mutex::default(),
            keys,
            _directory: directory,
        }
    }

    /// Kills the gateway with SIGKILL, and has it started again after a pause. Refused while it is
    /// down. Tells which process it was.
    pub(super) fn kill(self: &Arc<Self>, by: KilledBy) -> Result<u32, ActionRefusal> {
        let gateway = Arc::clone(&self.gateway).try_lock_owned();
        self.end(gateway.map_err(|_| ActionRefusal::GatewayDown)?, by)
    }

    /// Starts the gateway again when somebody else has killed it.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut looks = interval(LOOKED_AT_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if !self.is_dead().await {
                continue;
            }
            // Looked at again under the lock: it may have been ended and started meanwhile.
            let Ok(gateway) = Arc::clone(&self.gateway).try_lock_owned() else { continue };
            if self.is_dead().await {
                // What went wrong is shown as the gateway's status.
                let _ = self.end(gateway, KilledBy::SomebodyElse);
            }
        }
    }

    /// Whether it should be up and is not.
    async fn is_dead(&self) -> bool {
        self.is_up() && TcpStream::connect(self.address).await.is_err()
    }

    pub(super) fn is_up(&self) -> bool {
        matches!(self.status(), GatewayStatus::Up { .. })
    }

    pub(super) fn status(&self) -> GatewayStatus {
        unpoisoned(&self.status).clone()
    }

    /// The latest kills, the last one first.
    pub(super) fn kills(&self) -> Vec<Kill> {
        unpoisoned(&self.kills).iter().cloned().collect()
    }

    /// Nothing is awaited between the kill and the task that starts it again, so nobody who goes
    /// away meanwhile leaves it dead.
    fn end(
        self: &Arc<Self>,
        mut gateway: OwnedMutexGuard<DemoGateway>,
        by: KilledBy,
    ) -> Result<u32, ActionRefusal> {
        let (at, pid) = (now(), gateway.pid());
        let killed = block_in_place(|| gateway.kill());
        killed.map_err(ActionRefusal::NotKilled)?;
        self.set(GatewayStatus::Down { since: at });
        let mut kills = unpoisoned(&self.kills);
        kills.push_front(Kill { at, pid, by, left: None, back_at: None });
        kills.truncate(KILLS_MAX);
        drop(kills);
        tokio::spawn(Arc::clone(self).start(gateway));
        Ok(pid)
    }

    /// Starts it; what does not start after some tries is left to people.
    async fn start(self: Arc<Self>, mut gateway: OwnedMutexGuard<DemoGateway>) {
        // Nobody writes to its file now: what is running there is what it left behind.
        let left = self.keys.running_in_file().await.ok();
        self.note(|kill| kill.left = left);
        for tries in 1.. {
            sleep(DOWN_FOR).await;
            match block_in_place(|| gateway.start_again()) {
                Ok(()) => break,
                Err(error) if tries == STARTS_MAX => {
                    return self.set(GatewayStatus::Lost { why: Arc::new(error) });
                }
                Err(_) => {}
            }
        }
        let back_at = now();
        self.set(GatewayStatus::Up { pid: gateway.pid(), since: back_at });
        self.note(|kill| kill.back_at = Some(back_at));
    }

    /// Adds to what is known about the latest kill.
    fn note(&self, add: impl FnOnce(&mut Kill)) {
        unpoisoned(&self.kills).front_mut().map(add);
    }

    fn set(&self, status: GatewayStatus) {
        *unpoisoned(&self.status) = status;
    }
}

/// Every change is one assignment or one push, so what is poisoned is still right.
fn unpoisoned<T>(locked: &Mutex<T>) -> MutexGuard<'_, T> {
    locked.lock().unwrap_or_else(PoisonError::into_inner)
}
