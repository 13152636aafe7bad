//! Brokers: those that all tests share, and those that a test has for itself.

use hapax_services::{
    ServiceError,
    broker::{Broker, Mode},
    roster::{Roster, Service},
};
use tokio::task::spawn_blocking;

/// Where the server is that all tests share.
pub(crate) fn shared(service: Service) -> String {
    let roster = Roster::at(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.services"));
    let url = roster.of(service).url();
    url.unwrap_or_else(|| panic!("no {}: run `cargo xtask services up`", service.name()))
}

/// A name that nothing else on a shared server has.
pub(crate) fn unique(prefix: &str) -> String {
    format!("{prefix}-{:016x}", fastrand::u64(..))
}

/// A server of a test's own, which can fail.
pub(crate) struct Own(Option<Broker>);

impl Own {
    pub(crate) async fn start(start: fn() -> Result<Broker, ServiceError>) -> Self {
        Self(Some(spawn_blocking(start).await.unwrap().unwrap()))
    }

    pub(crate) fn url(&self) -> &str {
        self.broker().url()
    }

    pub(crate) async fn kill(&mut self) {
        self.with(|broker| broker.stop(Mode::Kill)).await;
    }

    /// Stops it in good order and starts it again: what was set up so far is on disk, and outlives a kill.
    pub(crate) async fn restart(&mut self) {
        self.with(|broker| broker.restart(Mode::Orderly)).await;
    }

    pub(crate) async fn revive(&mut self) {
        self.with(Broker::resume).await;
    }

    pub(crate) fn freeze(&self) {
        self.broker().pause().unwrap();
    }

    pub(crate) fn thaw(&self) {
        self.broker().unpause();
    }

    fn broker(&self) -> &Broker {
        self.0.as_ref().expect("nothing is under way with it")
    }

    async fn with(
        &mut self,
        work: impl FnOnce(&mut Broker) -> Result<(), ServiceError> + Send + 'static,
    ) {
        let mut broker = self.0.take().expect("nothing else is under way with it");
        let worked = spawn_blocking(move || {
            work(&mut broker).unwrap();
            broker
        });
        self.0 = Some(worked.await.unwrap());
    }
}

/// Asks an SQS server for something, without a client of ours.
#[cfg(feature = "sqs")]
pub(crate) async fn sqs_ask(
    server: &str,
    action: &str,
    what: serde_json::Value,
) -> serde_json::Value {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let address = server.strip_prefix("http://").unwrap();
    let mut socket = tokio::net::TcpStream::connect(address).await.unwrap();
    let body = what.to_string();
    let head = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nX-Amz-Target: AmazonSQS.{action}\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    if body.is_empty() { serde_json::Value::Null } else { serde_json::from_str(body).unwrap() }
}
