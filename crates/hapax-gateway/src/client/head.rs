//! The head of an answer, and how the body after it is framed.

use std::mem::MaybeUninit;

use bytes::{Buf, BytesMut};
use hapax_tower::TransferCoding;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING},
};
use httparse::{Header, ParserConfig, Status};

use super::{chunks::Chunks, framing::Framing, upgrade_offer::UpgradeOffer};
use crate::config::Upstream;

/// How much of a head is read. An answer over it is none: what it says of the effect is lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeadLimits {
    pub(super) bytes_max: usize,
    pub(super) headers_max: usize,
}

impl HeadLimits {
    pub(super) fn of(upstream: &Upstream) -> Self {
        Self { bytes_max: upstream.answer_head_bytes_max, headers_max: upstream.answer_headers_max }
    }
}

/// What an answer is read as: the answer to this.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedAnswer<'a> {
    pub(super) method: &'a Method,
    /// What the answer may switch to; nothing for most.
    pub(super) offer: Option<&'a UpgradeOffer>,
}

impl<'a> ExpectedAnswer<'a> {
    /// An answer in HTTP.
    pub(super) fn to(method: &'a Method) -> Self {
        Self { method, offer: None }
    }
}

/// A head, and what it says about what follows. One with status 101 switches to what was offered.
pub(super) struct Head {
    pub(super) response: Response<()>,
    pub(super) framing: Framing,
    /// Whether the connection can be used again after the body.
    pub(super) keeps_open: bool,
}

/// Why bytes are not an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadAnswer {
    #[error("the answer is not HTTP/1")]
    NotHttp(#[source] httparse::Error),
    #[error("the head of the answer is larger than `answer_head`, {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the answer has more headers than `answer_headers`, {headers_max}")]
    TooManyHeaders { headers_max: usize },
    #[error("the head of the answer has a line that HTTP does not know")]
    Unusable(#[source] http::Error),
    #[error("the answer does not say how long it is")]
    Length,
    #[error("the answer is coded for its way by something else than chunks")]
    Coding,
    #[error("the upstream switched to a protocol that was not offered")]
    Switched,
}

/// Takes the head of the answer to a request off the buffer; `None` until all of it is there.
pub(super) fn take(
    buffer: &mut BytesMut,
    expected: ExpectedAnswer<'_>,
    limits: HeadLimits,
) -> Result<Option<Head>, BadAnswer> {
    let HeadLimits { bytes_max, .. } = limits;
    loop {
        let Some((length, response)) = parse(buffer, limits)? else {
            let is_too_large = buffer.len() > bytes_max;
            return if is_too_large { Err(BadAnswer::TooLarge { bytes_max }) } else { Ok(None) };
        };
        if length > bytes_max {
            return Err(BadAnswer::TooLarge { bytes_max });
        }
        buffer.advance(length);
        match response.status() {
            StatusCode::SWITCHING_PROTOCOLS => return switched(response, expected).map(Some),
            // More is said before the answer itself.
            status if status.is_informational() => {}
            _ => return framed(response, expected.method).map(Some),
        }
    }
}

/// What comes after is not HTTP. Where nobody asked for that, nobody here speaks it either.
fn switched(response: Response<()>, expected: ExpectedAnswer<'_>) -> Result<Head, BadAnswer> {
    let taken_up = expected.offer.and_then(|offer| offer.taken_up(response.headers()));
    taken_up.ok_or(BadAnswer::Switched)?;
    Ok(Head { response, framing: Framing::Left(0), keeps_open: false })
}

/// As many headers as almost every answer has; room for more is made where it is needed.
const USUAL_HEADERS: usize = 100;

fn parse(
    buffer: &[u8],
    HeadLimits { headers_max, .. }: HeadLimits,
) -> Result<Option<(usize, Response<()>)>, BadAnswer> {
    let mut lines = [const { MaybeUninit::uninit() }; USUAL_HEADERS];
    let parsed = match parse_into(buffer, &mut lines[..headers_max.min(USUAL_HEADERS)]) {
        Err(BadAnswer::NotHttp(httparse::Error::TooManyHeaders)) if headers_max > USUAL_HEADERS => {
            parse_into(buffer, &mut vec![MaybeUninit::uninit(); headers_max])
        }
        parsed => parsed,
    };
    parsed.map_err(|bad| {
        let has_more = matches!(bad, BadAnswer::NotHttp(httparse::Error::TooManyHeaders));
        if has_more { BadAnswer::TooManyHeaders { headers_max } } else { bad }
    })
}

fn parse_into<'a>(
    buffer: &'a [u8],
    lines: &mut [MaybeUninit<Header<'a>>],
) -> Result<Option<(usize, Response<()>)>, BadAnswer> {
    let mut head = httparse::Response::new(&mut []);
    let parser = ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut head, buffer, lines);
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
    let (version, status) = (response.version(), response.status());
    let headers = response.headers_mut();
    let mut keeps_open = keeps_open(version, headers);
    let framing = if status == StatusCode::NO_CONTENT {
        // Whoever says what does not belong here may also send it.
        let length = headers.remove(CONTENT_LENGTH);
        let says_more = length.is_some_and(|length| length != "0");
        keeps_open &= headers.remove(TRANSFER_ENCODING).is_none() && !says_more;
        Framing::Left(0)
    } else {
        // Whoever says both is not to be trusted with what follows.
        let says_both =
            headers.contains_key(TRANSFER_ENCODING) && headers.remove(CONTENT_LENGTH).is_some();
        keeps_open &= !says_both;
        let framing = announced(version, headers)?;
        let is_bodiless = *method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
        if is_bodiless { Framing::Left(0) } else { framing }
    };
    keeps_open &= !matches!(framing, Framing::UntilClose);
    // What is passed on is written in a version of its own.
    *response.version_mut() = Version::HTTP_11;
    Ok(Head { response, framing, keeps_open })
}

/// The framing that a head speaks of, whether or not a body follows: one that contradicts itself is
/// refused either way, because the next reader may believe the other half of it.
fn announced(version: Version, headers: &mut HeaderMap) -> Result<Framing, BadAnswer> {
    match TransferCoding::of(headers) {
        TransferCoding::Absent => Ok(length(headers)?.map_or(Framing::UntilClose, Framing::Left)),
        TransferCoding::Chunked if version > Version::HTTP_10 => {
            Ok(Framing::Chunked(Chunks::default()))
        }
        TransferCoding::Chunked | TransferCoding::ChunkedTwice | TransferCoding::Other => {
            Err(BadAnswer::Coding)
        }
    }
}

/// The length that every line agrees on, left in the head as one number.
pub(super) fn length(headers: &mut HeaderMap) -> Result<Option<u64>, BadAnswer> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let Some(first) = lines.next() else { return Ok(None) };
    if lines.next().is_none()
        && let Some(length) = number(first.as_bytes())
    {
        return Ok(Some(length));
    }
    let lines = headers.get_all(CONTENT_LENGTH).iter();
    let mut said = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(number);
    let agreed = said.next().flatten().ok_or(BadAnswer::Length)?;
    if said.any(|length| length != Some(agreed)) {
        return Err(BadAnswer::Length);
    }
    headers.insert(CONTENT_LENGTH, agreed.into());
    Ok(Some(agreed))
}

fn number(digits: &[u8]) -> Option<u64> {
    let digits = str::from_utf8(digits.trim_ascii()).ok()?;
    // A sign is no digit, though it would be read as a part of the number.
    digits.bytes().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

fn keeps_open(version: Version, headers: &HeaderMap) -> bool {
    let says = |wanted: &str| {
        let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
        lines.flat_map(|line| line.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    if version == Version::HTTP_10 { says("keep-alive") } else { !says("close") }
}
