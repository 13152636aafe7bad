//! Natural idempotency: a database with somebody's tables, and the sessions that race on them.

use std::time::Duration;

use tokio::{task::JoinHandle, time::timeout};
use tokio_postgres::{Client, Config, SimpleQueryMessage, config::Host, error::SqlState};

use crate::backend::{Postgres, connect};

/// How long whatever has to come may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A database in which the functions are, and tables of somebody else.
pub(crate) struct Somebody {
    database: Postgres,
}

impl Somebody {
    pub(crate) async fn with(tables: &str) -> Self {
        let database = Postgres::empty().await;
        database.store().await;
        database.client().await.batch_execute(tables).await.unwrap();
        Self { database }
    }

    pub(crate) async fn session(&self) -> Session {
        self.session_at(&self.database.config()).await
    }

    pub(crate) async fn session_at(&self, config: &Config) -> Session {
        let client = connect(config).await;
        let mut session = Session { client, pid: 0 };
        session.pid = session.ask("SELECT pg_backend_pid()").await.parse().unwrap();
        session
    }

    /// Where the database is, for others to connect to.
    pub(crate) fn url(&self) -> String {
        let config = self.database.config();
        let [Host::Tcp(host)] = config.get_hosts() else { unreachable!("one server by its name") };
        let (user, port) = (config.get_user().unwrap(), config.get_ports()[0]);
        format!("postgres://{user}@{host}:{port}/{}", self.database.name)
    }

    /// The answer of one call on a session of its own.
    pub(crate) async fn ask(&self, call: &str) -> String {
        self.session().await.ask(call).await
    }

    /// Whether this session waits for another one; looks again until it does.
    pub(crate) async fn until_blocked(&self, pid: i32) {
        let observer = self.database.client().await;
        let blocked = "SELECT cardinality(pg_blocking_pids($1)) > 0";
        let looking = async {
            while !observer.query_one(blocked, &[&pid]).await.unwrap().get::<_, bool>(0) {
                tokio::task::yield_now().await;
            }
        };
        let waits = timeout(PATIENCE, looking).await.is_ok();
        assert!(waits, "session {pid} waits for nobody");
    }

    /// What `second` is answered when it is asked while `first` has answered but not ended, and
    /// `first` then ends so.
    pub(crate) async fn race(&self, race: Race<'_>) -> Result<String, SqlState> {
        let (first, second) = (self.session().await, self.session().await);
        first.run(&format!("BEGIN ISOLATION LEVEL {}; {}", race.level, race.first)).await;
        let begin = format!("BEGIN ISOLATION LEVEL {}; SELECT count(*) FROM pg_class", race.level);
        second.run(&begin).await;
        let pid = second.pid;
        let waiting = second.later(race.second);
        self.until_blocked(pid).await;
        first.run(race.end).await;
        let (second, answer) = waiting.await.unwrap();
        second.run(if answer.is_ok() { "COMMIT" } else { "ROLLBACK" }).await;
        answer
    }
}

/// Two sessions that want the same at the same time.
pub(crate) struct Race<'a> {
    pub(crate) level: &'a str,
    pub(crate) first: &'a str,
    pub(crate) second: &'a str,
    pub(crate) end: &'a str,
}

/// A connection, as a service has.
pub(crate) struct Session {
    client: Client,
    pub(crate) pid: i32,
}

impl Session {
    pub(crate) async fn run(&self, text: &str) {
        self.client.batch_execute(text).await.unwrap();
    }

    /// The only row of an answer as text, its columns with commas between them.
    pub(crate) async fn ask(&self, call: &str) -> String {
        self.try_ask(call).await.unwrap()
    }

    pub(crate) async fn try_ask(&self, call: &str) -> Result<String, tokio_postgres::Error> {
        let messages = self.client.simple_query(call).await?;
        let mut rows = messages.iter().filter_map(|message| {
            if let SimpleQueryMessage::Row(row) = message { Some(row) } else { None }
        });
        let row = rows.next().expect("an answer has a row");
        assert!(rows.next().is_none(), "{call} answered with more than one row");
        let columns = (0..row.len()).map(|at| row.get(at).unwrap_or("NULL"));
        Ok(columns.collect::<Vec<_>>().join(", "))
    }

    /// How many rows a statement wrote.
    pub(crate) async fn write(&self, statement: &str) -> u64 {
        self.client.execute(statement, &[]).await.unwrap()
    }

    /// Asks in the background, because it will have to wait.
    pub(crate) fn later(self, call: &str) -> JoinHandle<(Self, Result<String, SqlState>)> {
        let call = call.to_owned();
        tokio::spawn(async move {
            let answer = self.try_ask(&call).await;
            (self, answer.map_err(|error| error.code().expect("the server said it").clone()))
        })
    }

    /// The code a call is refused with, its message and its hint.
    pub(crate) async fn refusal(&self, call: &str) -> Refusal {
        let error = self.try_ask(call).await.expect_err(call);
        let error = error.as_db_error().expect("the server said it");
        let hint = error.hint().unwrap_or_default().to_owned();
        Refusal { code: error.code().code().to_owned(), said: error.message().to_owned(), hint }
    }
}

#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) said: String,
    pub(crate) hint: String,
}

/// Runs `clients` sessions at once; each asks for every call in turn, and tells its answers.
pub(crate) async fn crowd(somebody: &Somebody, calls: Vec<Vec<String>>) -> Vec<String> {
    let mut at_work = Vec::new();
    for calls in calls {
        let session = somebody.session().await;
        at_work.push(tokio::spawn(async move {
            let mut answers = Vec::new();
            for call in calls {
                answers.push(session.ask(&call).await);
            }
            answers
        }));
    }
    let mut answers = Vec::new();
    for at_work in at_work {
        answers.extend(at_work.await.unwrap());
    }
    answers
}

pub(crate) const READ_COMMITTED: &str = "READ COMMITTED";
pub(crate) const REPEATABLE_READ: &str = "REPEATABLE READ";
pub(crate) const SERIALIZABLE: &str = "SERIALIZABLE";

/// What a call says about wrong arguments, each refused before anything is written.
pub(crate) async fn check_refusals(somebody: &Somebody, cases: &[(&str, &str, &str)]) {
    let session = somebody.session().await;
    for (call, code, words) in cases {
        let refusal = session.refusal(call).await;
        assert_eq!(refusal.code, *code, "{call}: {refusal:?}");
        assert!(refusal.said.contains(words), "{call}: {refusal:?}");
        assert!(!refusal.hint.is_empty(), "{call}: {refusal:?}");
    }
}
