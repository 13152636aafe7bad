//! HTTP/1.1 read by hand: requests that come at once on a connection run beside each other, and are
//! answered in their order.

use std::{fmt::Write, future::ready, sync::Arc};

use bytes::Bytes;
use http::Request;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, tcp::OwnedReadHalf},
    sync::mpsc,
    task::JoinHandle,
};

use crate::{response::PlainResponse, routes, running::SpeciesInstance, submission::WholeRequest};

const AT_ONCE_MAX: usize = 64;
const REQUEST_BYTES_MAX: usize = 1024 * 1024;
const HEADERS_MAX: usize = 64;

/// Whether it begins as HTTP/2 does.
pub(crate) async fn is_http2(stream: &TcpStream) -> bool {
    let mut start = [0; 3];
    matches!(stream.peek(&mut start).await, Ok(3..)) && start == *b"PRI"
}

pub(crate) async fn serve(stream: TcpStream, instance: Arc<SpeciesInstance>, connection: u64) {
    let (mut reader, mut writer) = stream.into_split();
    let (began, mut running) = mpsc::channel::<JoinHandle<PlainResponse>>(AT_ONCE_MAX);
    let write = async {
        while let Some(run) = running.recv().await {
            let crashed = |_| PlainResponse::problem(500, "the server failed");
            let response = run.await.unwrap_or_else(crashed);
            if writer.write_all(&bytes(&response)).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        let mut buffer = Vec::new();
        loop {
            let next = next(&mut reader, &mut buffer).await;
            let (is_last, instance) = (next.is_err(), instance.clone());
            let run = match next {
                Ok(request) => {
                    let (head, body) = request.into_parts();
                    let number = instance.number;
                    let request = WholeRequest { head, body, connection, instance: number };
                    tokio::spawn(async move { routes::respond(request, &instance).await.0 })
                }
                Err(PipelineEnd::Malformed) => tokio::spawn(ready(malformed())),
                Err(PipelineEnd::Ended) => break,
            };
            if began.send(run).await.is_err() || is_last {
                break;
            }
        }
        drop(began);
    };
    tokio::join!(read, write);
}

/// Why no request follows.
enum PipelineEnd {
    /// The client has said all.
    Ended,
    /// What it said is no request.
    Malformed,
}

fn malformed() -> PlainResponse {
    PlainResponse::problem(400, "this is no request").with("connection", "close")
}

async fn next(
    reader: &mut OwnedReadHalf,
    buffer: &mut Vec<u8>,
) -> Result<Request<Bytes>, PipelineEnd> {
    loop {
        match PipelinedRequest::from(buffer).ok_or(PipelineEnd::Malformed)? {
            PipelinedRequest::Whole(request, taken) => {
                buffer.drain(..taken);
                return Ok(*request);
            }
            PipelinedRequest::Part => {}
        }
        let read = reader.read_buf(buffer).await.map_err(|_| PipelineEnd::Ended)?;
        if read == 0 {
            return Err(PipelineEnd::Ended);
        }
        if buffer.len() > REQUEST_BYTES_MAX {
            return Err(PipelineEnd::Malformed);
        }
    }
}

/// What there is of a request.
enum PipelinedRequest {
    /// All of it, in so many bytes.
    Whole(Box<Request<Bytes>>, usize),
    /// Its beginning.
    Part,
}

impl PipelinedRequest {
    /// Nothing if it will never be a request.
    fn from(buffer: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut head = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(start) = head.parse(buffer).ok()? else {
            return Some(Self::Part);
        };
        let mut request = Request::builder().method(head.method?).uri(head.path?);
        let mut length = 0;
        for header in head.headers {
            if header.name.eq_ignore_ascii_case("content-length") {
                length = str::from_utf8(header.value).ok()?.parse().ok()?;
            }
            request = request.header(header.name, header.value);
        }
        let end = start.checked_add(length)?;
        let Some(body) = buffer.get(start..end) else { return Some(Self::Part) };
        let request = request.body(Bytes::copy_from_slice(body)).ok()?;
        Some(Self::Whole(Box::new(request), end))
    }
}

fn bytes(response: &PlainResponse) -> Vec<u8> {
    let length = response.text.len();
    let mut text = format!("HTTP/1.1 {} Told\r\ncontent-length: {length}\r\n", response.status);
    for (name, value) in &response.headers {
        // Writing to a string does not fail.
        let _ = write!(text, "{name}: {value}\r\n");
    }
    text.push_str("\r\n");
    text.push_str(&response.text);
    text.into_bytes()
}
