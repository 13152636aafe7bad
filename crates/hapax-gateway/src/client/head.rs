//! The head of an answer, and how the body after it is framed.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use httparse::{ParserConfig, Status};

use super::chunks::Chunks;

/// Largest head that is read.
const HEAD_BYTES_MAX: usize = 400 << 10;
/// Most headers that are read.
const HEADERS_MAX: usize = 100;

/// A head, and what it says about what follows.
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// Whether the connection can be used again after the body.
    pub(super) keeps_open: bool,
}

/// Where a body ends.
pub(super) enum Framing {
    /// After this many more bytes.
    Left(u64),
    Chunked(Chunks),
    UntilClose,
}

/// Why bytes are not an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("the answer is not HTTP/1")]
    NotHttp(#[source] httparse::Error),
    #[error("the head of the answer is too large")]
    TooLarge,
    #[error("the head of the answer has a line that HTTP does not know")]
    Unusable(#[source] http::Error),
    #[error("the answer does not say how long it is")]
    Length,
    #[error("the upstream switched to another protocol")]
    Switched,
}

/// Takes the head of the answer to a request off the buffer; `None` until all of it is there.
pub(super) fn take(buffer: &mut BytesMut, method: &Method) -> Result<Option<Head>, BadAnswer> {
    loop {
        let Some((length, response)) = parse(buffer)? else {
            return if buffer.len() > HEAD_BYTES_MAX { Err(BadAnswer::TooLarge) } else { Ok(None) };
        };
        buffer.advance(length);
        match response.status() {
            // Nobody asked for it, and nobody here speaks what comes after it.
            StatusCode::SWITCHING_PROTOCOLS => return Err(BadAnswer::Switched),
            // More is said before the answer itself.
            status if status.is_informational() => {}
            _ => return framed(response, method).map(Some),
        }
    }
}

fn parse(buffer: &[u8]) -> Result<Option<(usize, Response<()>)>, BadAnswer> {
    let mut lines = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let parser = ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut head, buffer, &mut lines);
    let length = match parsed.map_err(BadAnswer::NotHttp)? {
        Status::Complete(length) => length,
        Status::Partial => return Ok(None),
    };
    let unusable = |error: http::Error| BadAnswer::Unusable(error);
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(head.code.unwrap_or_default()).map_err(|e| unusable(e.into()))?;
    *response.version_mut() =
        if head.version == Some(0) { Version::HTTP_10 } else { Version::HTTP_11 };
    let headers = response.headers_mut();
    headers.reserve(head.headers.len() + OURS);
    for line in head.headers {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|e| unusable(e.into()))?;
        let value = HeaderValue::from_bytes(line.value).map_err(|e| unusable(e.into()))?;
        headers.append(name, value);
    }
    Ok(Some((length, response)))
}

/// Room for the headers that are added on the way to the client.
const OURS: usize = 2;

fn framed(mut response: Response<()>, method: &Method) -> Result<Head, BadAnswer> {
    let version = response.version();
    let is_bodiless = *method == Method::HEAD
        || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
    let headers = response.headers_mut();
    let mut keeps_open = keeps_open(version, headers);
    let framing = if is_bodiless {
        Framing::Left(0)
    } else if headers.contains_key(TRANSFER_ENCODING) {
        if version == Version::HTTP_10 {
            return Err(BadAnswer::Length);
        }
        // Whoever says both is not to be trusted with what follows.
        keeps_open &= headers.remove(CONTENT_LENGTH).is_none();
        if is_chunked(headers) { Framing::Chunked(Chunks::default()) } else { Framing::UntilClose }
    } else if headers.contains_key(CONTENT_LENGTH) {
        Framing::Left(length(headers).ok_or(BadAnswer::Length)?)
    } else {
        Framing::UntilClose
    };
    keeps_open &= !matches!(framing, Framing::UntilClose);
    // What is passed on is written in a version of its own.
    *response.version_mut() = Version::HTTP_11;
    Ok(Head { response, framing, keeps_open })
}

/// The length that every line agrees on.
fn length(headers: &HeaderMap) -> Option<u64> {
    let mut agreed = None;
    for line in headers.get_all(CONTENT_LENGTH) {
        for digits in line.to_str().ok()?.split(',') {
            let digits = digits.trim();
            let is_number =
                !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let length = digits.parse().ok().filter(|_| is_number)?;
            if *agreed.get_or_insert(length) != length {
                return None;
            }
        }
    }
    agreed
}

fn is_chunked(headers: &HeaderMap) -> bool {
    let last = headers.get_all(TRANSFER_ENCODING).iter().next_back();
    let last = last.and_then(|line| line.to_str().ok()?.rsplit(',').next());
    last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
}

fn keeps_open(version: Version, headers: &HeaderMap) -> bool {
    let says = |wanted: &str| {
        let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    if version == Version::HTTP_10 { says("keep-alive") } else { !says("close") }
}
