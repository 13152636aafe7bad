//! Apache Kafka: one node that is broker and controller, on free loopback ports.
//!
//! It is the real one: idempotent producers, transactions, headers, consumer groups. A topic that is
//! written to is made, with three partitions. What it has acknowledged survives a kill, though not
//! the loss of the machine: Kafka leaves the writing out to the operating system.

use std::{fs, path::Path, time::Duration};

use crate::{
    broker::{Broker, Launch},
    error::ServiceError,
    jvm::Jars,
    ports, process,
    roster::Service,
};

/// The newest that runs on Java 17. It names no logger of its own.
const JARS: Jars = Jars {
    server: "Apache Kafka",
    name: "kafka-4.3.1",
    artifacts: &["org.apache.kafka:kafka_2.13:4.3.1", "org.slf4j:slf4j-simple:1.7.36"],
    remedy: "it needs Java 17 or later, and Maven that reaches its repository \
             (Debian: `apt-get install -y default-jre-headless maven`)",
};

const HEAP_MIB: u32 = 384;
const FORMAT_LIMIT: Duration = Duration::from_secs(60);
/// Sixteen bytes in base64: each of our clusters is alone in its directory, so all may share it.
const CLUSTER_ID: &str = "aGFwYXgtc2VydmljZXMtMQ";

/// Starts a Kafka of its own, fetching it first if need be.
///
/// When it returns, the broker serves clients at [`Broker::address`], which is what they call a
/// bootstrap server; [`Broker::url`] is the same with `kafka://` before it.
pub fn start() -> Result<Broker, ServiceError> {
    Broker::start(Service::Kafka, prepare)
}

/// What clients of a secured Kafka see, and have to say.
#[derive(Debug, Clone)]
pub struct Security {
    /// The broker's certificate for `localhost`, as PEM.
    pub certificate: String,
    /// Its key, as PEM.
    pub key: String,
    /// Who may come in, by SCRAM-SHA-512.
    pub user: String,
    /// With what.
    pub password: String,
}

/// The same, with a listener for TLS and SASL: it is on port [`Broker::address`] of `localhost`.
pub fn start_secured(security: &Security) -> Result<Broker, ServiceError> {
    Broker::start(Service::Kafka, |dir| {
        let [port, inner_port, controller_port] = ports::free()?;
        let store = dir.join("broker.pem");
        write(&store, &format!("{}{}", security.key, security.certificate))?;
        let more = secured(&store);
        let Security { user, password, .. } = security;
        let scram = format!("SCRAM-SHA-512=[name={user},password={password}]");
        let properties = properties(dir, inner_port, controller_port);
        // The listener for clients beside that for the broker itself.
        let properties = properties
            .replace("\nlisteners=", &format!("\nlisteners=SECURED://127.0.0.1:{port},"))
            .replace(".listeners=PLAIN", &format!(".listeners=SECURED://localhost:{port},PLAIN"))
            .replace("map=", "map=SECURED:SASL_SSL,");
        launch(dir, port, &format!("{properties}{more}"), &["--add-scram", &scram])
    })
}

fn secured(store: &Path) -> String {
    format!(
        "sasl.enabled.mechanisms=SCRAM-SHA-512\n\
         listener.name.secured.scram-sha-512.sasl.jaas.config=\
         org.apache.kafka.common.security.scram.ScramLoginModule required;\n\
         ssl.keystore.type=PEM\nssl.keystore.location={}\n",
        store.display()
    )
}

fn prepare(dir: &Path) -> Result<Launch, ServiceError> {
    let [port, controller_port] = ports::free()?;
    launch(dir, port, &properties(dir, port, controller_port), &[])
}

fn launch(
    dir: &Path,
    port: u16,
    properties: &str,
    accounts: &[&str],
) -> Result<Launch, ServiceError> {
    let settings = dir.join("server.properties");
    write(&settings, properties)?;
    let mut format = JARS.java(HEAP_MIB)?;
    format.args(["kafka.tools.StorageTool", "format", "--cluster-id", CLUSTER_ID]);
    process::run(format.args(accounts).arg("--config").arg(&settings), FORMAT_LIMIT)?;
    let mut broker = JARS.java(HEAP_MIB)?;
    broker.args([
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-Dorg.slf4j.simpleLogger.log.kafka.server.KafkaRaftServer=info",
        "kafka.Kafka",
    ]);
    broker.arg(&settings);
    Ok(Launch {
        service: Service::Kafka,
        commands: vec![broker],
        port,
        url: format!("kafka://127.0.0.1:{port}"),
        ready: |log| log.contains("Kafka Server started"),
    })
}

fn write(file: &Path, content: &str) -> Result<(), ServiceError> {
    fs::write(file, content).map_err(ServiceError::io(format!("write {}", file.display())))
}

fn properties(dir: &Path, port: u16, controller_port: u16) -> String {
    let data = dir.join("data");
    let data = data.display();
    // After a kill the broker is let in again once its former session is over: nine seconds, if
    // nothing is said.
    format!(
        "process.roles=broker,controller\nnode.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller_port}\n\
         controller.listener.names=CONTROLLER\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         log.dirs={data}\nnum.partitions=3\n\
         broker.session.timeout.ms=2000\nbroker.heartbeat.interval.ms=200\n\
         offsets.topic.replication.factor=1\noffsets.topic.num.partitions=4\n\
         transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n\
         transaction.state.log.num.partitions=4\n\
         share.coordinator.state.topic.replication.factor=1\n\
         share.coordinator.state.topic.min.isr=1\n\
         group.initial.rebalance.delay.ms=0\n"
    )
}
