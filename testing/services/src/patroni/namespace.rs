//! Machines and the network between them: network namespaces, joined by virtual cables.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;

use super::{SERVER, configuration::ETCD, inner_address};
use crate::{
    error::ServiceError,
    postgres::ACCOUNT,
    process::{self, Process, StopStep},
};

const TOOL_LIMIT: Duration = Duration::from_secs(10);
/// The two cables of a machine, as it calls them itself.
const TO_OTHERS: &str = "others";
const TO_CLIENTS: &str = "clients";
/// How often another name is tried for the cables of clients, which are seen by all of this machine.
const NAMES_TRIED: u32 = 50;

/// A network of its own, for as long as somebody is in it.
#[derive(Debug)]
pub(super) struct Namespace(Process);

impl Namespace {
    fn new(log: &Path) -> Result<Self, ServiceError> {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]);
        let mut holder = Process::spawn("a network namespace", &mut command, log)?;
        let (ours, its) = (place("self"), place(&holder.pid().to_string()));
        let is_apart = || {
            fs::read_link(&its).is_ok_and(|its| fs::read_link(&ours).is_ok_and(|ours| ours != its))
        };
        let ready = holder.wait_until_ready(TOOL_LIMIT, is_apart);
        let mut namespace = Self(holder);
        let lit = ready.and_then(|()| namespace.ip(&["link", "set", "lo", "up"]));
        if lit.is_err() {
            namespace.end();
        }
        lit.map(|()| namespace)
    }

    /// A command that is run in it.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net={}", place(&self.0.pid().to_string()).display()));
        // The directory we are called in may be closed to the other user.
        command.arg(program).current_dir("/").env("LC_ALL", "C");
        command
    }

    pub(super) fn end(&mut self) {
        // Nobody is left to be told.
        let _ = self.0.stop(&[StopStep::KILL]);
    }

    fn ip(&self, args: &[&str]) -> Result<(), ServiceError> {
        process::run(self.command("ip").args(args), TOOL_LIMIT).map(|_| ())
    }

    fn address(&self, cable: &str, address: Ipv4Addr, bits: u8) -> Result<(), ServiceError> {
        self.ip(&["addr", "add", &format!("{address}/{bits}"), "dev", cable])?;
        self.ip(&["link", "set", cable, "up"])
    }
}

/// One of the machines: where its cables end, and what runs on it.
#[derive(Debug)]
pub(super) struct Machine {
    /// Where clients reach it.
    pub(super) address: Ipv4Addr,
    namespace: Namespace,
    running: Option<Process>,
    log: PathBuf,
}

impl Machine {
    /// Has Patroni run on it, with nothing but itself and what it starts.
    pub(super) fn switch_on(&mut self, configuration: &Path) -> Result<(), ServiceError> {
        let mut command = self.namespace.command("unshare");
        command.args(["--pid", "--fork", "--kill-child", "--mount-proc", "--ipc", "setpriv"]);
        command.args(["--reuid", ACCOUNT, "--regid", ACCOUNT, "--init-groups"]);
        command.args(["--pdeathsig", "keep", "patroni"]).arg(configuration);
        self.running = Some(Process::spawn(SERVER, &mut command, &self.log)?);
        Ok(())
    }

    /// Ends everything that runs on it, at once.
    pub(super) fn switch_off(&mut self) -> Result<(), ServiceError> {
        // Whoever waits for the first process hears of its end when all the others have ended too.
        const WAIT: StopStep = StopStep { signal: Signal::CONT, patience: Duration::from_secs(60) };
        let Some(mut running) = self.running.take() else { return Ok(()) };
        let pid = running.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.map_err(ServiceError::io("find the first process of a machine"))?;
        for first in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            process::send(first, Signal::KILL);
        }
        running.stop(&[WAIT, StopStep::KILL])
    }

    /// Takes it off the network of the others.
    pub(super) fn cut_off(&self) -> Result<(), ServiceError> {
        self.namespace.ip(&["link", "set", TO_OTHERS, "down"])
    }

    /// Puts it back.
    pub(super) fn heal(&self) -> Result<(), ServiceError> {
        self.namespace.ip(&["link", "set", TO_OTHERS, "up"])
    }

    /// Takes it off both networks: whoever speaks to it hears nothing.
    pub(super) fn unplug(&self) -> Result<(), ServiceError> {
        self.cut_off()?;
        self.namespace.ip(&["link", "set", TO_CLIENTS, "down"])
    }

    pub(super) fn end(&mut self) {
        self.namespace.end();
    }

    /// The end of what it has said.
    pub(super) fn log(&self) -> String {
        process::tail(&self.log)
    }
}

/// A switch, and machines with a cable to it and one to whoever calls this.
pub(super) fn network(
    dir: &Path,
    machines: usize,
) -> Result<(Namespace, Vec<Machine>), ServiceError> {
    let log = dir.join("network.log");
    let mut switch = Namespace::new(&log)?;
    let mut plugged = Vec::with_capacity(machines);
    let made = (|| {
        switch.ip(&["link", "add", "name", "switch", "type", "bridge"])?;
        switch.address("switch", ETCD, 24)?;
        for node in 0..machines {
            let namespace = Namespace::new(&log)?;
            let log = dir.join(format!("machine{node}.log"));
            let address = Ipv4Addr::UNSPECIFIED;
            plugged.push(Machine { address, namespace, running: None, log });
        }
        for (node, machine) in plugged.iter_mut().enumerate() {
            join_others(&switch, machine, node)?;
            machine.address = join_clients(machine)?;
        }
        Ok(())
    })();
    if made.is_err() {
        plugged.iter_mut().for_each(Machine::end);
        switch.end();
    }
    made.map(|()| (switch, plugged))
}

fn join_others(switch: &Namespace, machine: &Machine, node: usize) -> Result<(), ServiceError> {
    let (port, pid) = (format!("port{node}"), machine.namespace.0.pid().to_string());
    let cable = ["link", "add", "name", &port, "type", "veth", "peer", "name", TO_OTHERS];
    switch.ip(&[&cable[..], &["netns", &pid]].concat())?;
    switch.ip(&["link", "set", &port, "master", "switch", "up"])?;
    machine.namespace.address(TO_OTHERS, inner_address(node), 24)
}

/// Lays a cable to where we are, with two addresses that are nobody's else, and says which is the machine's.
fn join_clients(machine: &Machine) -> Result<Ipv4Addr, ServiceError> {
    let pid = machine.namespace.0.pid().to_string();
    let ip = |args: &[&str]| process::run(Command::new("ip").args(args), TOOL_LIMIT);
    let mut tries = 1;
    let (cable, ours, its) = loop {
        // A range set aside for tests of networks, in pieces of four addresses.
        let (third, fourth) = (fastrand::u8(..), fastrand::u8(..64) * 4);
        let cable = format!("hapax{third}-{fourth}");
        let ends = ["link", "add", "name", &cable, "type", "veth", "peer", "name", TO_CLIENTS];
        match ip(&[&ends[..], &["netns", &pid]].concat()) {
            Err(_) if tries < NAMES_TRIED => tries += 1,
            Err(error) => return Err(error),
            Ok(_) => {
                let at = |last: u8| Ipv4Addr::new(198, 18, third, fourth + last);
                break (cable, at(1), at(2));
            }
        }
    };
    ip(&["addr", "add", &format!("{ours}/30"), "dev", &cable])?;
    ip(&["link", "set", &cable, "up"])?;
    machine.namespace.address(TO_CLIENTS, its, 30)?;
    Ok(its)
}

/// What names the network namespace of a process.
fn place(pid: &str) -> PathBuf {
    Path::new("/proc").join(pid).join("ns/net")
}
