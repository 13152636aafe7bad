//! A server that speaks Amazon's SQS: ElasticMQ, on a free loopback port.
//!
//! Queues, messages, receive counts and visibility timeouts survive a kill: they are written to disk
//! before they are acknowledged. What a restart forgets are the deduplication ids of messages that
//! were deleted meanwhile: Amazon remembers them for five minutes after they were sent. There is a
//! queue called `ready` from the start.

use std::{fs, path::Path};

use crate::{
    broker::{Broker, Launch},
    error::ServiceError,
    jvm::Jars,
    ports,
    roster::Service,
};

const JARS: Jars = Jars {
    server: "ElasticMQ",
    name: "elasticmq-1.7.1",
    artifacts: &["org.elasticmq:elasticmq-server_2.13:1.7.1"],
    remedy: "it needs Java 17 or later, and Maven that reaches its repository \
             (Debian: `apt-get install -y default-jre-headless maven`)",
};

const HEAP_MIB: u32 = 192;

/// Starts an SQS server of its own, fetching it first if need be.
///
/// When it returns, the server serves clients at `http://127.0.0.1:PORT`, for any region and any
/// credentials; the URL of a queue is `http://127.0.0.1:PORT/000000000000/NAME`.
pub fn start() -> Result<Broker, ServiceError> {
    Broker::start(Service::Sqs, prepare)
}

fn prepare(dir: &Path) -> Result<Launch, ServiceError> {
    let [port] = ports::free()?;
    let settings = dir.join("elasticmq.conf");
    fs::write(&settings, configuration(dir, port))
        .map_err(ServiceError::io(format!("write {}", settings.display())))?;
    let mut server = JARS.java(HEAP_MIB)?;
    // It seldom lives long enough for the slower compiler to pay.
    server.arg("-XX:TieredStopAtLevel=1");
    server.arg(format!("-Dconfig.file={}", settings.display()));
    server.arg("org.elasticmq.server.Main");
    let url = format!("http://127.0.0.1:{port}");
    Ok(Launch { service: Service::Sqs, commands: vec![server], port, url, ready: is_restored })
}

fn configuration(dir: &Path, port: u16) -> String {
    let data = dir.join("data");
    let data = data.display();
    format!(
        "include classpath(\"application.conf\")\n\
         node-address {{ protocol = http, host = \"127.0.0.1\", port = {port}, context-path = \"\" }}\n\
         rest-sqs {{ enabled = true, bind-hostname = \"127.0.0.1\", bind-port = {port}, \
         sqs-limits = strict }}\n\
         rest-stats {{ enabled = false }}\n\
         messages-storage {{ enabled = true, driver-class = \"org.h2.Driver\", \
         uri = \"jdbc:h2:{data};WRITE_DELAY=0\", username = \"sa\", password = \"\" }}\n\
         queues {{ ready {{ }} }}\n"
    )
}

/// It listens before it has read its queues, and does not say when it is done: when each queue that
/// it has made again, ours at least, has its messages.
fn is_restored(log: &str) -> bool {
    let count = |text: &str| log.matches(text).count();
    let (made, restored) = (count("Creating queue "), count(" messages in queue "));
    log.contains("Started SQS rest server") && restored > 0 && restored == made
}
