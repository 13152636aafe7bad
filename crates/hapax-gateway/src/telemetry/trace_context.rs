//! `traceparent`, as W3C Trace Context writes it.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) static TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The name of a trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TraceId([u8; 16]);

/// The name of a span.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpanId([u8; 8]);

/// A span as others are told of it: whoever goes on from it is its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    /// Which trace it belongs to.
    pub trace_id: TraceId,
    /// Which of its spans it is.
    pub span_id: SpanId,
    /// Whether the trace is recorded.
    pub is_sampled: bool,
}

impl TraceId {
    /// A new one.
    pub(super) fn random() -> Self {
        // All zeros would be none.
        Self(fastrand::u128(1..).to_be_bytes())
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// A new one.
    pub(super) fn random() -> Self {
        Self(fastrand::u64(1..).to_be_bytes())
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl TraceContext {
    /// What this head says; `None` if it says nothing, or not in one good line.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(&TRACEPARENT).iter();
        match (lines.next(), lines.next()) {
            (Some(line), None) => Self::parse(line.as_bytes()),
            (_, _) => None,
        }
    }

    /// Reads `00-TRACE-SPAN-FLAGS`. Later versions may be longer, and begin alike.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (known, further) = text.split_at_checked(WRITTEN_BYTES)?;
        let [version] = hex(&known[..2])?;
        let is_good = match version {
            0 => further.is_empty(),
            0xff => false,
            _ => further.is_empty() || further[0] == b'-',
        };
        let dashes = [known[2], known[35], known[52]] == *b"---";
        let (trace_id, span_id) = (hex(&known[3..35])?, hex(&known[36..52])?);
        let [flags] = hex(&known[53..])?;
        let is_named = trace_id != [0; 16] && span_id != [0; 8];
        let (trace_id, span_id) = (TraceId(trace_id), SpanId(span_id));
        (is_good && dashes && is_named).then_some(Self {
            trace_id,
            span_id,
            is_sampled: flags & SAMPLED != 0,
        })
    }

    /// The same trace, with a new span in it.
    pub(super) fn child(self) -> Self {
        Self { span_id: SpanId::random(), ..self }
    }

    /// Says it in a head, in place of what that said before.
    pub(crate) fn say(self, headers: &mut HeaderMap) {
        let mut written = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_hex(&mut written[3..35], &self.trace_id.0);
        write_hex(&mut written[36..52], &self.span_id.0);
        written[54] += u8::from(self.is_sampled);
        if let Ok(value) = HeaderValue::from_bytes(&written) {
            headers.insert(TRACEPARENT.clone(), value);
        }
    }
}

/// The length of version 0.
const WRITTEN_BYTES: usize = 55;
/// The flag that the trace is recorded.
const SAMPLED: u8 = 1;

/// Reads hexadecimal digits, which have to be lower case here.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn write_hex(out: &mut [u8], bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

fn show(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        show(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_said_is_read_again() {
        let context = TraceContext::parse(GOOD.as_bytes()).unwrap();
        assert_eq!(context.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.span_id.to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled);
        let mut headers = HeaderMap::new();
        context.say(&mut headers);
        assert_eq!(headers["traceparent"], GOOD);
        let unsampled = TraceContext { is_sampled: false, ..context };
        unsampled.say(&mut headers);
        assert_eq!(TraceContext::of(&headers), Some(unsampled));
    }

    #[test]
    fn a_later_version_may_say_more_and_this_one_may_not() {
        let later = GOOD.replacen("00-", "cc-", 1);
        for (text, is_good) in [
            (later.clone(), true),
            (format!("{later}-what-comes"), true),
            (format!("{later}.what"), false),
            (format!("{GOOD}-more"), false),
            (GOOD.replacen("00-", "ff-", 1), false),
        ] {
            assert_eq!(TraceContext::parse(text.as_bytes()).is_some(), is_good, "{text}");
        }
    }

    #[test]
    fn what_names_nothing_or_is_written_otherwise_is_no_context() {
        for text in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(text.as_bytes()), None, "{text}");
        }
        let mut twice = HeaderMap::new();
        twice.append(&TRACEPARENT, HeaderValue::from_static(GOOD));
        twice.append(&TRACEPARENT, HeaderValue::from_static(GOOD));
        assert_eq!(TraceContext::of(&twice), None);
    }
}
