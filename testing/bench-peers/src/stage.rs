//! A way with what it needs: a fresh store, an upstream, its servers.

use std::{
    cell::Cell,
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use hapax_services::{
    postgres,
    process::{Process, StopStep},
};
use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{
    args::Serve,
    effect,
    error::BenchError,
    redis::Redis,
    ways::{Keeping, LOGIN, Maker, PROXY_PATH, Proxy, Way},
    wire::{Client, Wrong},
};

const READY_LIMIT: Duration = Duration::from_secs(20);
/// Ends a process as a crash would.
pub(crate) const KILL: &[StopStep] = &[StopStep::KILL];

/// What stages share.
#[derive(Debug)]
pub(crate) struct Ground {
    postgres: Option<postgres::Server>,
    proxy: Option<Proxy>,
    databases: Cell<u32>,
}

/// How a stage differs from the way as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Effects are counted in memory, settings are the way's own.
    Measure,
    /// Effects are noted in a file.
    Examine { lease: Option<Duration> },
}

/// A way that can be asked. Dropping it ends its processes.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    serve: Serve,
    servers: Vec<Server>,
    upstream: Option<Server>,
    redis: Option<Redis>,
    database: Option<String>,
    ground: &'a Ground,
    directory: TempDir,
}

impl Ground {
    /// Starts and installs what these ways need.
    pub(crate) fn prepare(ways: &[Way]) -> Result<Self, BenchError> {
        let needed = |need: fn(Way) -> bool| ways.iter().copied().any(need);
        if needed(|way| matches!(way.keeping(), Keeping::Redis(_))) {
            Redis::find_or_install()?;
        }
        let postgres = needed(|way| way.keeping() == Keeping::Postgres)
            .then(|| postgres::Server::start(postgres::Settings::default()));
        let proxy = needed(|way| way.maker() == Maker::Proxy).then(Proxy::find_or_install);
        Ok(Self {
            postgres: postgres.transpose()?,
            proxy: proxy.transpose()?,
            databases: Cell::new(0),
        })
    }

    /// Sets up a way with an empty store and one server.
    pub(crate) async fn stage(&self, way: Way, purpose: Purpose) -> Result<Stage<'_>, BenchError> {
        let directory = tempfile::tempdir().map_err(BenchError::system("a directory"))?;
        let (lease, effects) = match purpose {
            Purpose::Measure => (None, None),
            Purpose::Examine { lease } => (lease, Some(directory.path().join("effects"))),
        };
        let store = String::new();
        let serve = Serve { way, port: 0, store, upstream: 0, lease, effects };
        let (redis, database) = (None, None);
        let (servers, upstream) = (Vec::new(), None);
        let mut stage =
            Stage { serve, servers, upstream, redis, database, ground: self, directory };
        stage.set_up().await?;
        Ok(stage)
    }

    async fn execute(&self, statement: &str) -> Result<Option<String>, BenchError> {
        let Some(server) = &self.postgres else { return Ok(None) };
        let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await?;
        let connection = tokio::spawn(connection);
        client.batch_execute(statement).await?;
        drop(client);
        // How a connection ends that is no longer needed changes nothing.
        let _ = connection.await;
        Ok(Some(server.url()))
    }
}

impl Stage<'_> {
    async fn set_up(&mut self) -> Result<(), BenchError> {
        match self.serve.way.keeping() {
            Keeping::Memory => {}
            Keeping::File => self.serve.store = self.path("store.db").display().to_string(),
            Keeping::Redis(fsync) => {
                let redis = Redis::start(fsync, self.directory.path())?;
                self.serve.store = redis.url();
                self.redis = Some(redis);
            }
            Keeping::Postgres => {
                let number = self.ground.databases.get() + 1;
                self.ground.databases.set(number);
                let name = format!("peers_{number}");
                let url = self.ground.execute(&format!("CREATE DATABASE {name}")).await?;
                let server = url.as_deref().and_then(|url| url.rsplit_once('/'));
                self.serve.store = format!("{}/{name}", server.map_or("", |(server, _)| server));
                self.database = Some(name);
            }
        }
        if self.serve.way.is_proxy() {
            let (way, lease, port) = (Way::Bare, None, free_port()?);
            let behind = Serve { way, lease, port, ..self.serve.clone() };
            self.serve.upstream = port;
            self.upstream = Some(self.start(&behind)?);
        }
        self.add_server()
    }

    /// Starts one more server on the same store.
    pub(crate) fn add_server(&mut self) -> Result<(), BenchError> {
        let serve = Serve { port: free_port()?, ..self.serve.clone() };
        let server = self.start(&serve)?;
        self.servers.push(server);
        Ok(())
    }

    /// Kills the first server in mid-work, and starts it again.
    pub(crate) fn crash(&mut self) -> Result<(), BenchError> {
        self.servers.remove(0);
        self.add_server()
    }

    pub(crate) fn server(&self, number: usize) -> &Process {
        &self.servers[number].process
    }

    pub(crate) fn store_pid(&self) -> Option<u32> {
        let postgres = self.ground.postgres.as_ref().filter(|_| self.database.is_some());
        self.redis.as_ref().map(Redis::pid).or_else(|| postgres?.pid())
    }

    /// Whether several servers can share what is remembered.
    pub(crate) fn can_be_shared(&self) -> bool {
        self.serve.way.keeping() != Keeping::Memory
    }

    /// How often this key was executed, as noted in the file.
    pub(crate) fn effects(&self, key: &str) -> u32 {
        effect::noted(&self.path("effects"), key)
    }

    /// A connection to one of the servers, with a session where one is needed.
    pub(crate) async fn client(&self, number: usize) -> Result<Client, Wrong> {
        let port = self.servers[number].port;
        let maker = self.serve.way.maker();
        let path = if maker == Maker::Proxy { PROXY_PATH } else { effect::PATH };
        let mut client = Client::connect(port, path).await?;
        if maker == Maker::Sessions {
            client.log_in(LOGIN).await?;
        }
        Ok(client)
    }

    /// What the handler did, in its own words.
    pub(crate) async fn ledger(&self) -> Result<String, Wrong> {
        let asked = self.upstream.as_ref().unwrap_or(&self.servers[0]);
        let mut client = Client::connect(asked.port, effect::PATH).await?;
        Ok(client.get(effect::LEDGER).await?.body)
    }

    /// Ends everything, and removes what it wrote.
    pub(crate) async fn end(mut self) -> Result<(), BenchError> {
        self.servers.clear();
        if let Some(name) = &self.database {
            let drop = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
            self.ground.execute(&drop).await?;
        }
        Ok(())
    }

    fn start(&self, serve: &Serve) -> Result<Server, BenchError> {
        let mut command = match (&self.ground.proxy, serve.way.maker()) {
            (Some(proxy), Maker::Proxy) => proxy.command(serve, self.directory.path())?,
            _ => this_program(serve)?,
        };
        let log = self.path(&format!("{}.log", serve.port));
        let process = Process::spawn(serve.way.label(), &mut command, &log)?;
        let mut server = Server { process, port: serve.port };
        let address = SocketAddr::from(([127, 0, 0, 1], serve.port));
        server.process.wait_until_ready(READY_LIMIT, || {
            TcpStream::connect_timeout(&address, READY_LIMIT).is_ok()
        })?;
        Ok(server)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

/// A process that serves. Dropping it kills it.
#[derive(Debug)]
struct Server {
    process: Process,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to be told; what it left behind is what a crash leaves.
        let _ = self.process.stop(KILL);
    }
}

/// This program, to be started as a server.
fn this_program(serve: &Serve) -> Result<Command, BenchError> {
    let program = std::env::current_exe().map_err(BenchError::system("finding this program"))?;
    let mut command = Command::new(program);
    command.args(["--serve", &serve.way.name(), "--port", &serve.port.to_string()]);
    command.args(["--upstream", &serve.upstream.to_string(), "--store", &serve.store]);
    if let Some(lease) = serve.lease {
        command.args(["--lease-ms", &lease.as_millis().to_string()]);
    }
    if let Some(effects) = &serve.effects {
        command.arg("--effects").arg(effects);
    }
    Ok(command)
}

/// A port that nobody listens on now.
pub(crate) fn free_port() -> Result<u16, BenchError> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(BenchError::system("finding a free port"))
}
