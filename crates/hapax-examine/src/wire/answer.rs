//! An answer of HTTP/1.1, from bytes.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::stream::WireStream;
use crate::RawAnswer;

/// Most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
const HEADERS_MAX: usize = 128;

/// How reading an answer ended.
#[derive(Debug)]
pub(super) enum AnswerEnd {
    /// With how many bytes it has.
    Whole(RawAnswer, usize),
    Closed(Bytes),
    Silent(Bytes),
    Unreadable(String),
}

/// How much of a body there is to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    Known(usize),
    Chunked,
    UntilClose,
}

/// Reads one answer, without what comes behind it on the connection.
pub(super) async fn read_answer(
    stream: &mut WireStream,
    method: &str,
    on_first_byte: impl FnOnce(),
    patience: Duration,
) -> AnswerEnd {
    let mut bytes = BytesMut::new();
    read_next_answer(stream, &mut bytes, method, on_first_byte, patience).await
}

/// Reads the next answer of a connection; `bytes` are what has come and was not read.
pub(super) async fn read_next_answer(
    stream: &mut WireStream,
    bytes: &mut BytesMut,
    method: &str,
    on_first_byte: impl FnOnce(),
    patience: Duration,
) -> AnswerEnd {
    let until = Instant::now() + patience;
    let mut on_first_byte = Some(on_first_byte);
    loop {
        let is_over = match parse(bytes, method, false) {
            Ok(Some((answer, length))) => {
                // What came with the answer before.
                if let Some(tell) = on_first_byte.take() {
                    tell();
                }
                bytes.advance(length);
                return AnswerEnd::Whole(answer, length);
            }
            Ok(None) => false,
            Err(reason) => return AnswerEnd::Unreadable(reason),
        };
        if is_over || bytes.len() > ANSWER_BYTES_MAX {
            return AnswerEnd::Unreadable(format!("it is longer than {ANSWER_BYTES_MAX} bytes"));
        }
        match stream.read(bytes, until.saturating_duration_since(Instant::now())).await {
            None => return AnswerEnd::Silent(bytes.split().freeze()),
            // The end, or an end without manners.
            Some(Ok(0) | Err(_)) => {
                return match parse(bytes, method, true) {
                    Ok(Some((answer, length))) => AnswerEnd::Whole(answer, length),
                    Ok(None) | Err(_) => AnswerEnd::Closed(bytes.split().freeze()),
                };
            }
            Some(Ok(_)) => {
                if let Some(tell) = on_first_byte.take() {
                    tell();
                }
            }
        }
    }
}

/// The answer that `bytes` begin with and how long it is, if it is whole.
fn parse(
    bytes: &[u8],
    method: &str,
    is_closed: bool,
) -> Result<Option<(RawAnswer, usize)>, String> {
    let mut skipped = 0;
    loop {
        let rest = bytes.get(skipped..).unwrap_or_default();
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let parsed =
            response.parse(rest).map_err(|error| format!("the answer is no HTTP/1.1: {error}"))?;
        let httparse::Status::Complete(head) = parsed else { return Ok(None) };
        let status = response.code.unwrap_or_default();
        // Another one follows.
        if (100..200).contains(&status) {
            skipped += head;
            continue;
        }
        let headers: Vec<_> = response
            .headers
            .iter()
            .map(|header| {
                (
                    header.name.to_ascii_lowercase(),
                    String::from_utf8_lossy(header.value).into_owned(),
                )
            })
            .collect();
        let rest = rest.get(head..).unwrap_or_default();
        let body = match length(&headers, status, method)? {
            BodyLength::Known(length) => rest.get(..length).map(|body| (body.to_vec(), length)),
            BodyLength::Chunked => unchunk(rest)?,
            BodyLength::UntilClose => is_closed.then(|| (rest.to_vec(), rest.len())),
        };
        return Ok(body.map(|(body, length)| {
            (RawAnswer { status, headers, body: body.into() }, skipped + head + length)
        }));
    }
}

fn length(headers: &[(String, String)], status: u16, method: &str) -> Result<BodyLength, String> {
    let find = |name: &str| headers.iter().find(|(given, _)| given == name).map(|(_, value)| value);
    if method == "HEAD" || matches!(status, 204 | 304) {
        return Ok(BodyLength::Known(0));
    }
    if find("transfer-encoding")
        .is_some_and(|coding| coding.to_ascii_lowercase().contains("chunked"))
    {
        return Ok(BodyLength::Chunked);
    }
    match find("content-length") {
        Some(text) => {
            text.trim().parse().map(BodyLength::Known).map_err(|_| format!("`{text}` is no length"))
        }
        None => Ok(BodyLength::UntilClose),
    }
}

/// The content of chunks and how long they are, if all have come.
pub(crate) fn unchunk(bytes: &[u8]) -> Result<Option<(Vec<u8>, usize)>, String> {
    let (mut body, mut at) = (Vec::new(), 0);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let size =
            httparse::parse_chunk_size(rest).map_err(|_| "a chunk has no length".to_owned())?;
        let httparse::Status::Complete((head, length)) = size else { return Ok(None) };
        let length = usize::try_from(length).map_err(|_| "a chunk is too long".to_owned())?;
        at += head;
        if length == 0 {
            return Ok(trailer_end(bytes.get(at..).unwrap_or_default()).map(|end| (body, at + end)));
        }
        let Some(chunk) = bytes.get(at..at.saturating_add(length)) else { return Ok(None) };
        body.extend_from_slice(chunk);
        at += length + 2;
    }
}

/// Where what follows the last chunk ends: trailers, and an empty line.
fn trailer_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let line = bytes.get(at..)?.windows(2).position(|pair| pair == b"\r\n")?;
        at += line + 2;
        if line == 0 {
            return Some(at);
        }
    }
}
