//! RabbitMQ: one node with its own port mapper, on free loopback ports.
//!
//! Erlang nodes find each other through a daemon that all nodes of a machine share and that outlives
//! them. Ours has one of its own, which ends with it.

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    broker::{Broker, Launch},
    debian,
    error::ServiceError,
    ports, programs,
    roster::Service,
};

const SERVER: &str = "RabbitMQ";
const REMEDY: &str = "install it (Debian: `apt-get install -y rabbitmq-server`) \
                      or put `rabbitmq-server` and `epmd` on the PATH";

/// Debian's program of the same name on the PATH is a wrapper that changes the user.
const PLACES: &[&str] = &["/usr/lib/rabbitmq/bin"];

/// Starts a RabbitMQ node of its own, installing RabbitMQ first if need be.
///
/// When it returns, the node serves clients at `amqp://guest:guest@127.0.0.1:PORT/%2f`. Durable
/// queues and persistent messages that were confirmed survive a kill.
pub fn start() -> Result<Broker, ServiceError> {
    Broker::start(Service::RabbitMq, prepare)
}

fn prepare(dir: &Path) -> Result<Launch, ServiceError> {
    let tools = RabbitMqTools::find_or_install()?;
    let [port, node_port, mapper_port] = ports::free()?;
    let settings = format!(
        "listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = true\nlog.console.level = info\n\
         log.file = false\n"
    );
    for (name, text) in [("rabbitmq.conf", settings.as_str()), ("enabled_plugins", "[].\n")] {
        let file = dir.join(name);
        fs::write(&file, text).map_err(ServiceError::io(format!("write {}", file.display())))?;
    }
    let mut mapper = Command::new(tools.mapper);
    // Its command line names our directory, by which it is recognised later.
    mapper.arg0(dir.join("epmd")).args(["-address", "127.0.0.1", "-port"]);
    mapper.arg(mapper_port.to_string());
    let mut node = Command::new(tools.server);
    node.env("ERL_EPMD_PORT", mapper_port.to_string()).env("ERL_EPMD_ADDRESS", "127.0.0.1");
    node.env("RABBITMQ_NODENAME", "rabbit@localhost");
    node.env("RABBITMQ_DIST_PORT", node_port.to_string());
    for (name, file) in [
        ("HOME", ""),
        ("RABBITMQ_MNESIA_BASE", "data"),
        ("RABBITMQ_LOG_BASE", "log"),
        ("RABBITMQ_CONFIG_FILE", "rabbitmq.conf"),
        ("RABBITMQ_ADVANCED_CONFIG_FILE", "advanced.config"),
        ("RABBITMQ_CONF_ENV_FILE", "rabbitmq-env.conf"),
        ("RABBITMQ_ENABLED_PLUGINS_FILE", "enabled_plugins"),
        ("RABBITMQ_PID_FILE", "node.pid"),
    ] {
        node.env(name, dir.join(file));
    }
    // It replaces the script that starts it if it may read input, which it then may not after all:
    // so the process we know is the one that works.
    node.env("RABBITMQ_LOGS", "-").env("RABBITMQ_ALLOW_INPUT", "1");
    let arguments = "-noinput -start_epmd false -kernel inet_dist_use_interface {127,0,0,1} \
                     +sbwt none +sbwtdcpu none +sbwtdio none";
    node.env("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", arguments);
    Ok(Launch {
        service: Service::RabbitMq,
        commands: vec![mapper, node],
        port,
        url: format!("amqp://guest:guest@127.0.0.1:{port}/%2f"),
        ready: |log| log.contains("Server startup complete"),
    })
}

struct RabbitMqTools {
    server: PathBuf,
    mapper: PathBuf,
}

impl RabbitMqTools {
    fn find_or_install() -> Result<Self, ServiceError> {
        if let Some(tools) = Self::find() {
            return Ok(tools);
        }
        debian::install(SERVER, "rabbitmq-server", REMEDY)?;
        Self::find().ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })
    }

    fn find() -> Option<Self> {
        let server = programs::find("rabbitmq-server", PLACES)?;
        Some(Self { server, mapper: programs::find("epmd", &[])? })
    }
}
