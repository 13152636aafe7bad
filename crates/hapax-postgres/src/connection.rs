//! A connection that comes back by itself, with the session every statement relies on.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use tokio::{
    sync::{Mutex as AsyncMutex, mpsc},
    time::timeout,
};
use tokio_postgres::{AsyncMessage, Client, Connection, Row, Socket, Statement, types::ToSql};

use hapax_core::incarnation::Incarnation;

use crate::{
    connect::{Address, ConnectFailure, EncryptedStream},
    error::{OpenError, StatementFailure},
    incarnation::LeadsTo,
};

/// What is sent on every new connection.
///
/// The planner's choices are pinned, because a plan made while a table was empty is kept for the
/// life of the connection. No statement timeout: it could cut a commit that waits for a standby. The
/// search path keeps what others made in schema `public` out of what runs with our rights.
const SESSION: &str = "
SET search_path = pg_catalog, pg_temp;
SET standard_conforming_strings = on;
SET default_transaction_isolation = 'read committed';
SET plan_cache_mode = force_generic_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_hashjoin = off;
SET enable_mergejoin = off;
SET max_parallel_workers_per_gather = 0;
SET jit = off;
SET statement_timeout = 0;
SET lock_timeout = '2s';
SET idle_in_transaction_session_timeout = '10s';
SET client_min_messages = warning;
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') = 'off';
";

/// Notifications kept for a slow listener; further ones are dropped, since they are hints.
const NOTIFICATIONS_MAX: usize = 1024;

/// Where one connection is kept, and made anew when it is lost.
pub(crate) struct ConnectionSlot {
    address: Address,
    answer_timeout: Duration,
    wire: AsyncMutex<Option<Arc<SharedConnection>>>,
    connections: AtomicU64,
    leads_to: LeadsTo,
}

impl ConnectionSlot {
    /// A link that connects when it is first used.
    pub(crate) fn new(address: &Address, answer_timeout: Duration) -> Self {
        let (address, connections) = (address.clone(), AtomicU64::new(0));
        Self {
            address,
            answer_timeout,
            wire: AsyncMutex::default(),
            connections,
            leads_to: LeadsTo::Any,
        }
    }

    /// The same, to these databases alone.
    pub(crate) fn to(self, leads_to: LeadsTo) -> Self {
        Self { leads_to, ..self }
    }

    /// Whether the connection leads where it may.
    fn leads_right(&self, wire: &SharedConnection) -> bool {
        wire.incarnation.as_ref().is_none_or(|incarnation| self.leads_to.allows(incarnation))
    }

    /// The connection, made now if there is none.
    pub(crate) async fn wire(&self) -> Result<Arc<SharedConnection>, StatementFailure> {
        let mut slot = self.wire.lock().await;
        let usable = |wire: &&Arc<SharedConnection>| !wire.is_lost() && self.leads_right(wire);
        if let Some(wire) = slot.as_ref().filter(usable) {
            return Ok(Arc::clone(wire));
        }
        let (wire, _) = self.connect().await.map_err(StatementFailure::not_sent)?;
        Ok(Arc::clone(slot.insert(Arc::new(wire))))
    }

    /// A connection of one's own, and what is notified on it: to the first host that will do.
    pub(crate) async fn connect(
        &self,
    ) -> Result<(SharedConnection, mpsc::Receiver<String>), OpenError> {
        let (mut unreached, mut unfit) = (Vec::new(), None);
        for attempt in self.address.attempts().await? {
            match attempt.connect().await {
                Err(failure) => unreached.push(failure),
                Ok((client, connection)) => match self.enter(client, connection).await {
                    Ok(entered) => return Ok(entered),
                    Err(error) => unfit = Some(error),
                },
            }
        }
        Err(unfit.unwrap_or_else(|| ConnectFailure::of(unreached).into()))
    }

    async fn enter(
        &self,
        client: Client,
        connection: Connection<Socket, EncryptedStream<Socket>>,
    ) -> Result<(SharedConnection, mpsc::Receiver<String>), OpenError> {
        let warnings = Arc::new(AtomicU64::new(0));
        let (notify, notified) = mpsc::channel(NOTIFICATIONS_MAX);
        tokio::spawn(drive(connection, Arc::clone(&warnings), notify));
        client.batch_execute(SESSION).await.map_err(OpenError::Unusable)?;
        refuse_read_only(&client).await?;
        let incarnation = self.leads_to.check(&client).await?;
        let wire = SharedConnection {
            incarnation,
            number: self.connections.fetch_add(1, Ordering::Relaxed),
            client,
            warnings,
            discarded: AtomicBool::new(false),
            answer_timeout: self.answer_timeout,
            statements: Mutex::default(),
        };
        Ok((wire, notified))
    }
}

impl fmt::Debug for ConnectionSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSlot").finish_non_exhaustive()
    }
}

/// One connection, shared: what is sent at the same time is pipelined.
pub(crate) struct SharedConnection {
    /// Which database it leads to, where that matters.
    incarnation: Option<Incarnation>,
    number: u64,
    client: Client,
    warnings: Arc<AtomicU64>,
    discarded: AtomicBool,
    answer_timeout: Duration,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl SharedConnection {
    /// Runs a statement, prepared once per connection.
    pub(crate) async fn query(
        &self,
        text: &'static str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, StatementFailure> {
        let statement = self.statement(text).await?;
        self.answered(self.client.query(&statement, params)).await
    }

    /// Runs a statement without parameters and without an answer.
    pub(crate) async fn execute(&self, text: &str) -> Result<(), StatementFailure> {
        self.answered(self.client.batch_execute(text)).await
    }

    /// Which of its link's connections it is.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// How many warnings have come. One during a commit means that the server gave up waiting for
    /// a standby: the commit is on its own disk, and perhaps nowhere else.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.load(Ordering::Acquire)
    }

    fn is_lost(&self) -> bool {
        self.discarded.load(Ordering::Relaxed) || self.client.is_closed()
    }

    async fn statement(&self, text: &'static str) -> Result<Statement, StatementFailure> {
        let known = self.known().get(text).cloned();
        if let Some(statement) = known {
            return Ok(statement);
        }
        let prepared = self.answered(self.client.prepare(text)).await;
        let statement = prepared.map_err(StatementFailure::before_sending)?;
        self.known().insert(text, statement.clone());
        Ok(statement)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<&'static str, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an answer. A connection that does not answer, or whose prepared statements no
    /// longer fit the schema, is not used again.
    async fn answered<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, StatementFailure> {
        if self.is_lost() {
            return Err(StatementFailure::not_sent("the connection was closed"));
        }
        let answer = timeout(self.answer_timeout, answer).await;
        let result = match answer {
            Ok(answer) => answer.map_err(StatementFailure::from),
            Err(elapsed) => Err(StatementFailure::unanswered(elapsed)),
        };
        if result.as_ref().is_err_and(StatementFailure::spoils_the_connection) {
            self.discarded.store(true, Ordering::Relaxed);
        }
        result
    }
}

/// Refuses a standby, and a database set to be read-only.
pub(crate) async fn refuse_read_only(client: &Client) -> Result<(), OpenError> {
    let row = client.query_one("SHOW transaction_read_only", &[]).await;
    let setting: String = row.and_then(|row| row.try_get(0)).map_err(OpenError::Unusable)?;
    if setting == "on" { Err(OpenError::ReadOnly) } else { Ok(()) }
}

/// Moves bytes until the connection ends.
async fn drive(
    mut connection: Connection<Socket, EncryptedStream<Socket>>,
    warnings: Arc<AtomicU64>,
    notify: mpsc::Sender<String>,
) {
    let mut messages = stream::poll_fn(move |cx| connection.poll_message(cx));
    while let Some(message) = messages.next().await {
        match message {
            Ok(AsyncMessage::Notice(notice)) => {
                tracing::warn!(%notice, "the server warns");
                warnings.fetch_add(1, Ordering::Release);
            }
            Ok(AsyncMessage::Notification(notification)) => {
                let _ = notify.try_send(notification.payload().to_owned());
            }
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a connection ended");
                return;
            }
        }
    }
}
