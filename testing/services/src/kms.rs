//! A server that speaks Amazon's KMS: moto, on a free loopback port. Its keys are gone with it.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    path::Path,
    process::Command,
    time::Duration,
};

use crate::{
    broker::{Broker, Launch},
    cache,
    error::ServiceError,
    nats, ports, process,
    roster::Service,
};

const SERVER: &str = "moto";
const REMEDY: &str = "it needs Python 3 with pip that reaches its index, for `moto` 5.2.5";
const CACHED: &str = "moto-5.2.5";
const REQUIREMENTS: [&str; 3] = ["moto==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];

const FETCH_LIMIT: Duration = Duration::from_secs(600);

/// Starts a KMS server of its own, fetching it first if need be.
///
/// When it returns, the server serves clients at `http://127.0.0.1:PORT`, for any region and any credentials.
pub fn start() -> Result<Broker, ServiceError> {
    Broker::start(Service::Kms, prepare)
}

/// Asks the server for a new key, and gives back its ARN.
pub fn create_key(server: &Broker) -> Result<String, ServiceError> {
    let address = server.address();
    let asked = || {
        let mut socket = TcpStream::connect(address)?;
        let request = format!(
            "POST / HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
             x-amz-target: TrentService.CreateKey\r\ncontent-type: application/x-amz-json-1.1\r\n\
             authorization: AWS4-HMAC-SHA256 Credential=a/20260101/eu-central-1/kms/aws4_request\r\n\
             content-length: 2\r\n\r\n{{}}"
        );
        socket.write_all(request.as_bytes())?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        let after = answer.split_once("\"Arn\": \"").map(|(_, after)| after);
        let arn = after.and_then(|after| after.split_once('"')).map(|(arn, _)| arn.to_owned());
        arn.ok_or_else(|| io::Error::other(answer))
    };
    asked().map_err(ServiceError::io("make a key"))
}

fn prepare(_: &Path) -> Result<Launch, ServiceError> {
    let packages = cache::filled(CACHED, fetch)?;
    let [port] = ports::free()?;
    let mut server = Command::new(nats::python(SERVER, REMEDY)?);
    server.env("PYTHONPATH", packages);
    server.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.to_string()]);
    Ok(Launch {
        service: Service::Kms,
        commands: vec![server],
        port,
        url: format!("http://127.0.0.1:{port}"),
        ready: |log| log.contains("Running on"),
    })
}

fn fetch(dir: &Path) -> Result<(), ServiceError> {
    let mut pip = Command::new(nats::python(SERVER, REMEDY)?);
    pip.args(["-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target"]);
    let fetched = process::run(pip.arg(dir).args(REQUIREMENTS), FETCH_LIMIT);
    fetched.map(drop).map_err(ServiceError::not_fetched(SERVER, REMEDY))
}
