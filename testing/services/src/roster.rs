//! Servers that outlive the command that started them, remembered in a directory.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

use crate::{
    broker,
    error::ServiceError,
    kafka, kms, nats, postgres,
    process::{LeftoverProcess, StopStep},
    rabbitmq, sqs,
};

/// One server remembered in a directory, as `NAME.url`, `NAME.pid` and `NAME.dir`.
#[derive(Debug, Clone)]
pub struct Roster {
    dir: PathBuf,
    service: Service,
}

/// The servers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// PostgreSQL.
    Postgres,
    /// Apache Kafka.
    Kafka,
    /// NATS with JetStream.
    Nats,
    /// RabbitMQ.
    RabbitMq,
    /// A server that speaks Amazon's SQS.
    Sqs,
    /// A server that speaks Amazon's KMS.
    Kms,
}

/// What [`Roster::up`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Up {
    /// It was not there, and now it is.
    Started {
        /// Where clients connect.
        url: String,
    },
    /// It was already there.
    WasRunning {
        /// Where clients connect.
        url: String,
    },
}

impl fmt::Display for Up {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { url } => write!(f, "started: {url}"),
            Self::WasRunning { url } => write!(f, "was running: {url}"),
        }
    }
}

impl Roster {
    /// The PostgreSQL remembered in `dir`, which need not exist yet.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), service: Service::Postgres }
    }

    /// Another server remembered in the same directory.
    pub fn of(&self, service: Service) -> Self {
        Self { dir: self.dir.clone(), service }
    }

    /// Makes sure the server runs, and remembers it.
    pub fn up(&self) -> Result<Up, ServiceError> {
        if let Some(url) = self.url() {
            return Ok(Up::WasRunning { url });
        }
        self.down()?;
        let server = self.service.start()?;
        if let Err(error) = self.remember(&server) {
            server.remove()?;
            return Err(error);
        }
        Ok(Up::Started { url: server.url })
    }

    /// Stops the remembered server if it is still ours, removes its files and forgets it; false if
    /// none was remembered.
    pub fn down(&self) -> Result<bool, ServiceError> {
        let Some(server) = self.remembered() else { return Ok(false) };
        server.remove()?;
        for part in PARTS {
            let file = self.file(part);
            fs::remove_file(&file)
                .map_err(ServiceError::io(format!("remove {}", file.display())))?;
        }
        Ok(true)
    }

    /// Where clients connect to the remembered server; `None` if it does not run.
    pub fn url(&self) -> Option<String> {
        self.remembered().filter(DetachedServer::is_running).map(|server| server.url)
    }

    fn remember(&self, server: &DetachedServer) -> Result<(), ServiceError> {
        fs::create_dir_all(&self.dir)
            .map_err(ServiceError::io(format!("make {}", self.dir.display())))?;
        let dir = server.dir.display().to_string();
        let pids: Vec<_> = server.pids.iter().map(u32::to_string).collect();
        for (part, text) in PARTS.into_iter().zip([&pids.join(" "), &dir, &server.url]) {
            let file = self.file(part);
            fs::write(&file, text)
                .map_err(ServiceError::io(format!("write {}", file.display())))?;
        }
        Ok(())
    }

    fn remembered(&self) -> Option<DetachedServer> {
        let [pids, dir, url] = PARTS.map(|part| fs::read_to_string(self.file(part)).ok());
        let pids = pids?.split_whitespace().map(|pid| pid.parse().ok()).collect::<Option<_>>()?;
        let dir = Path::new(dir?.trim()).to_owned();
        Some(DetachedServer { service: self.service, url: url?.trim().to_owned(), pids, dir })
    }

    fn file(&self, part: &str) -> PathBuf {
        self.dir.join(format!("{}.{part}", self.service.name()))
    }
}

/// In the order they are written: whoever reads the URL finds the rest.
const PARTS: [&str; 3] = ["pid", "dir", "url"];

impl Service {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Postgres, Self::Kafka, Self::Nats, Self::RabbitMq, Self::Sqs, Self::Kms];

    /// What it is called on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Kafka => "kafka",
            Self::Nats => "nats",
            Self::RabbitMq => "rabbitmq",
            Self::Sqs => "sqs",
            Self::Kms => "kms",
        }
    }

    /// What it is called in messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Kafka => "Apache Kafka",
            Self::Nats => "NATS",
            Self::RabbitMq => "RabbitMQ",
            Self::Sqs => "ElasticMQ",
            Self::Kms => "moto",
        }
    }

    fn start(self) -> Result<DetachedServer, ServiceError> {
        match self {
            Self::Postgres => {
                // Tests make and drop hundreds of databases on it, and none of them cuts its power.
                let config = vec!["fsync=off".to_owned()];
                Ok(postgres::Server::start(postgres::Settings { config, ..Default::default() })?
                    .detach())
            }
            Self::Kafka => Ok(kafka::start()?.detach()),
            Self::Nats => Ok(nats::start()?.detach()),
            Self::RabbitMq => Ok(rabbitmq::start()?.detach()),
            Self::Sqs => Ok(sqs::start()?.detach()),
            Self::Kms => Ok(kms::start()?.detach()),
        }
    }

    fn steps(self) -> &'static [StopStep] {
        match self {
            Self::Postgres => postgres::Mode::Fast.steps(),
            Self::Kafka | Self::Nats | Self::RabbitMq | Self::Sqs | Self::Kms => {
                broker::Mode::Orderly.steps()
            }
        }
    }
}

/// A server that outlives the program that started it.
#[derive(Debug, Clone)]
pub(crate) struct DetachedServer {
    pub(crate) service: Service,
    pub(crate) url: String,
    /// Its processes, in the order they were started.
    pub(crate) pids: Vec<u32>,
    pub(crate) dir: PathBuf,
}

impl DetachedServer {
    fn is_running(&self) -> bool {
        !self.pids.is_empty() && self.left().all(|process| process.is_running())
    }

    /// Stops it if it runs, and removes its files.
    fn remove(&self) -> Result<(), ServiceError> {
        for process in self.left().rev() {
            process.stop(self.service.steps())?;
        }
        if self.dir.exists() {
            let removed = fs::remove_dir_all(&self.dir);
            removed.map_err(ServiceError::io(format!("remove {}", self.dir.display())))?;
        }
        Ok(())
    }

    fn left(&self) -> impl DoubleEndedIterator<Item = LeftoverProcess> {
        let left = |pid: &u32| LeftoverProcess {
            server: self.service.title(),
            pid: *pid,
            mark: self.dir.clone(),
        };
        self.pids.iter().map(left)
    }
}
