//! PostgreSQL under a cluster manager: three servers, each watched by a Patroni of its own, and an etcd they agree by.
//!
//! Every machine is a network namespace with two cables: one to the others and to etcd, one to the clients, who are
//! whoever started it. So a machine can be lost, or cut off from the others while clients still reach it.

mod configuration;
mod namespace;

use std::{
    collections::HashSet,
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
    thread,
    time::Duration,
};

use tempfile::TempDir;

use self::{
    configuration::{ETCD, ETCD_PORT, POSTGRES_PORT, REST_PORT},
    namespace::{Machine, Namespace},
};
use crate::{
    debian,
    error::ServiceError,
    postgres::{self, ACCOUNT, Account},
    process::{Process, StopStep, WaitDeadline},
    programs,
};

pub(crate) const SERVER: &str = "Patroni";
const REMEDY: &str = "install it and etcd (Debian: `apt-get install -y patroni etcd-server`), and be root, \
                      who may make network namespaces";
const PROGRAMS: [(&str, &str); 2] = [("patroni", "patroni"), ("etcd", "etcd-server")];

/// How many machines there are.
const NODES: usize = 3;

const READY_LIMIT: Duration = Duration::from_secs(60);
/// How long a machine may take to accept a connection, or to answer, before it counts as gone.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
const LOOKS_APART: Duration = Duration::from_millis(100);

/// What a leader's commits wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replication {
    /// One other server has them on its disk (`synchronous_mode` and `synchronous_mode_strict`).
    Synchronous,
    /// Nobody else.
    Asynchronous,
}

/// A running cluster. Dropping it ends it and removes its files.
///
/// Machines are counted from zero. The servers trust everybody who reaches them and run as user `postgres`.
#[derive(Debug)]
pub struct Cluster {
    replication: Replication,
    machines: Vec<Machine>,
    etcd: Process,
    // The last: a namespace ends with whoever is in it.
    switch: Namespace,
    dir: TempDir,
}

impl Cluster {
    /// Starts a cluster, installing Patroni, etcd and PostgreSQL first if need be.
    ///
    /// When it returns, it is [whole](Self::wait_until_whole).
    pub fn start(replication: Replication) -> Result<Self, ServiceError> {
        if !rustix::process::geteuid().is_root() {
            return Err(ServiceError::Missing { server: SERVER, remedy: REMEDY });
        }
        let bin = postgres::programs()?;
        for (program, package) in PROGRAMS {
            find_or_install(program, package)?;
        }
        let dir = tempfile::Builder::new().prefix("hapax-patroni-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        let account = Account::find()?;
        account.hand_over(dir.path())?;
        let (switch, machines) = namespace::network(dir.path(), NODES)?;
        let etcd = start_etcd(&switch, &dir, &account)?;
        let mut cluster = Self { replication, machines, etcd, switch, dir };
        for node in 0..NODES {
            let files = cluster.dir.path().join(configuration::name(node));
            fs::create_dir(&files).map_err(ServiceError::io("make a directory for a server"))?;
            account.hand_over(&files)?;
            let text = configuration::of_node(node, &files, &bin, replication);
            fs::write(cluster.configuration(node), text)
                .map_err(ServiceError::io("configure Patroni"))?;
            cluster.switch_on(node)?;
        }
        cluster.wait_until_whole()?;
        Ok(cluster)
    }

    /// Where all of them are; whichever takes writes is meant.
    pub fn address(&self) -> String {
        let hosts: Vec<_> =
            self.machines.iter().map(|machine| machine.address.to_string()).collect();
        let hosts = hosts.join(",");
        format!("postgres://postgres@{hosts}/postgres?target_session_attrs=read-write")
    }

    /// Where one of them is, whatever it takes.
    pub fn url(&self, node: usize) -> String {
        let address = self.machines[node].address;
        format!("postgres://postgres@{address}:{POSTGRES_PORT}/postgres")
    }

    /// Waits until one of them says that it leads, other than the one named, and says which.
    ///
    /// One that has been cut off believes so for a while, which is why it can be named.
    pub fn wait_for_leader(&self, but: Option<usize>) -> Result<usize, ServiceError> {
        let mut leader = None;
        self.wait_until("a leader", || {
            let mut others = (0..NODES).filter(|node| Some(*node) != but);
            leader = others.find(|node| self.is(*node, "leader"));
            leader.is_some()
        })?;
        Ok(leader.unwrap_or_default())
    }

    /// Waits until one leads and all the others follow, one of them with every commit where these are waited for.
    ///
    /// Before that, nobody could take the leader's place in a synchronous cluster.
    pub fn wait_until_whole(&self) -> Result<(), ServiceError> {
        self.wait_until("a whole cluster", || {
            let leader = (0..NODES).find(|node| self.is(*node, "leader"));
            let members = leader.and_then(|leader| self.told(leader, "cluster"));
            members.is_some_and(|members| is_whole(&members, self.replication))
        })
    }

    /// Loses the machine: nobody reaches it any more, and nothing on it runs on.
    pub fn kill(&mut self, node: usize) -> Result<(), ServiceError> {
        self.machines[node].unplug()?;
        self.machines[node].switch_off()
    }

    /// Takes the machine off the network of the others and of etcd. It runs on, and clients reach it.
    pub fn cut_off(&self, node: usize) -> Result<(), ServiceError> {
        self.machines[node].cut_off()
    }

    /// Puts a machine that was cut off back on the network.
    pub fn heal(&self, node: usize) -> Result<(), ServiceError> {
        self.machines[node].heal()
    }

    fn switch_on(&mut self, node: usize) -> Result<(), ServiceError> {
        let configuration = self.configuration(node);
        self.machines[node].switch_on(&configuration)
    }

    fn configuration(&self, node: usize) -> PathBuf {
        self.dir.path().join(configuration::name(node)).with_extension("yml")
    }

    /// Whether a machine says that it has this role: Patroni answers 200 to whoever asks for it.
    fn is(&self, node: usize, role: &str) -> bool {
        let answer = self.told(node, role);
        answer.is_some_and(|answer| answer.split(' ').nth(1) == Some("200"))
    }

    /// What Patroni on this machine answers.
    fn told(&self, node: usize, what: &str) -> Option<String> {
        let address = SocketAddr::from((self.machines[node].address, REST_PORT));
        let mut socket = TcpStream::connect_timeout(&address, ANSWER_LIMIT).ok()?;
        socket.set_read_timeout(Some(ANSWER_LIMIT)).ok()?;
        socket.write_all(format!("GET /{what} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    fn wait_until(&self, what: &str, mut seen: impl FnMut() -> bool) -> Result<(), ServiceError> {
        let deadline = WaitDeadline::after(READY_LIMIT);
        while !seen() {
            // Each look is work for every Patroni.
            thread::sleep(LOOKS_APART);
            if !deadline.pause() {
                let what = format!("waiting for {what}");
                let log = self.machines.iter().map(Machine::log).collect::<Vec<_>>().join("\n");
                return Err(ServiceError::TooSlow { what, limit: READY_LIMIT, log });
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Nobody is left to be told, and files are removed in any case. Namespaces end with their processes.
        for machine in &mut self.machines {
            let _ = machine.switch_off();
            machine.end();
        }
        let _ = self.etcd.stop(&[StopStep::KILL]);
        self.switch.end();
    }
}

/// Whether everybody is there, has the same history, and the roles are given.
fn is_whole(members: &str, replication: Replication) -> bool {
    let timelines: Vec<_> = members.split("\"timeline\": ").skip(1).collect();
    let timelines = timelines.iter().map(|rest| rest.split([',', '}']).next());
    let is_one = timelines.clone().count() == NODES && timelines.collect::<HashSet<_>>().len() == 1;
    let synchronous = usize::from(replication == Replication::Synchronous);
    is_one && members.matches("\"sync_standby\"").count() == synchronous
}

fn start_etcd(
    switch: &Namespace,
    dir: &TempDir,
    account: &Account,
) -> Result<Process, ServiceError> {
    let data = dir.path().join("etcd");
    fs::create_dir(&data).map_err(ServiceError::io("make a directory for etcd"))?;
    account.hand_over(&data)?;
    let clients = format!("http://{ETCD}:{ETCD_PORT}");
    let mut command = switch.command("setpriv");
    command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups", "etcd"]);
    command.arg("--data-dir").arg(&data).args(["--listen-client-urls", &clients]);
    command.args(["--advertise-client-urls", &clients]);
    command.args(["--listen-peer-urls", "http://127.0.0.1:2380"]);
    let mut etcd = Process::spawn("etcd", &mut command, &dir.path().join("etcd.log"))?;
    let ready = etcd.wait_until_logged(READY_LIMIT, |log| log.contains("ready to serve client"));
    if ready.is_err() {
        // The error of the start is the one to tell; a failing stop would only hide it.
        let _ = etcd.stop(&[StopStep::KILL]);
    }
    ready.map(|_| etcd)
}

fn find_or_install(program: &str, package: &str) -> Result<(), ServiceError> {
    let is_there = || programs::find(program, &["/usr/bin"]).is_some();
    if is_there() {
        return Ok(());
    }
    debian::install(SERVER, package, REMEDY)?;
    is_there().then_some(()).ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })
}

/// The address of a machine among the others.
fn inner_address(node: usize) -> Ipv4Addr {
    let [a, b, c, d] = ETCD.octets();
    Ipv4Addr::new(a, b, c, d + 10 + u8::try_from(node).unwrap_or_default())
}
