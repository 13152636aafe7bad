//! What went over the wire, as text without secrets and of bounded length.

use super::{
    document::{
        CutDocument, CutManner, CutMessage, EndDocument, ExchangeDocument, MessageDocument,
    },
    minutes::micros,
    redaction::{Asker, Redaction},
    text::WrittenText,
};
use crate::{CutEnd, Exchange, ExchangeEnd, JsonPath, RawAnswer, WireCut, WireProtocol};

/// Most that a report shows of a head or of a body.
const SHOWN_BYTES_MAX: usize = 16 * 1024;
/// Most that a report shows of the name of an effect.
const EFFECT_CHARS_MAX: usize = 64;
/// A character that was cut in half is beyond what is shown.
const CHARACTER_BYTES_MAX: usize = 4;

/// `id` is where answers name their effect.
pub(super) fn exchange_document(
    exchange: &Exchange,
    id: Option<&JsonPath>,
    redaction: &Redaction,
) -> ExchangeDocument {
    let protocol = match exchange.protocol {
        WireProtocol::Http1 => "HTTP/1.1",
        WireProtocol::Http2 => "HTTP/2",
    };
    ExchangeDocument {
        number: exchange.number,
        label: redaction.text(&WrittenText::of(exchange.label.as_bytes()).text),
        address: exchange.address,
        protocol: protocol.to_owned(),
        asked_by: redaction.asker(&exchange.request).map(Asker::name).map(str::to_owned),
        request: message(&exchange.request, redaction),
        cut: exchange.cut.as_ref().map(cut),
        began_micros: micros(exchange.began),
        sent_micros: exchange.sent.map(micros),
        answered_micros: exchange.answered.map(micros),
        ended_micros: micros(exchange.ended),
        end: end(&exchange.end, protocol, redaction),
        effect: effect(exchange, id, redaction),
    }
}

fn effect(exchange: &Exchange, id: Option<&JsonPath>, redaction: &Redaction) -> Option<String> {
    let answer = exchange.answer().filter(|answer| answer.is_success())?;
    let name = id?.text(&answer.body)?;
    let written = WrittenText::of(name.as_bytes()).text;
    Some(redaction.text(&written).chars().take(EFFECT_CHARS_MAX).collect())
}

fn end(end: &ExchangeEnd, protocol: &str, redaction: &Redaction) -> EndDocument {
    match end {
        ExchangeEnd::Answered(given) => EndDocument::Answered {
            status: given.status,
            answer: answer(given, protocol, redaction),
        },
        ExchangeEnd::BrokenOff { received } => {
            EndDocument::BrokenOff { received: message(received, redaction) }
        }
        ExchangeEnd::Closed { received } => {
            EndDocument::Closed { received: message(received, redaction) }
        }
        ExchangeEnd::Silent { received } => {
            EndDocument::Silent { received: message(received, redaction) }
        }
        ExchangeEnd::Failed { reason } => {
            EndDocument::Failed { reason: redaction.text(&WrittenText::of(reason.as_bytes()).text) }
        }
    }
}

fn answer(answer: &RawAnswer, protocol: &str, redaction: &Redaction) -> MessageDocument {
    let mut head = format!("{protocol} {}", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("\r\n{name}: {value}"));
    }
    parts(head.as_bytes(), &answer.body, redaction)
}

/// A message as it went over the wire, or the beginning of one.
fn message(bytes: &[u8], redaction: &Redaction) -> MessageDocument {
    const END_OF_HEAD: &[u8] = b"\r\n\r\n";
    let end = bytes.windows(END_OF_HEAD.len()).position(|window| window == END_OF_HEAD);
    let end = end.unwrap_or(bytes.len());
    let body = bytes.get(end + END_OF_HEAD.len()..).unwrap_or_default();
    parts(bytes.get(..end).unwrap_or_default(), body, redaction)
}

fn parts(head: &[u8], body: &[u8], redaction: &Redaction) -> MessageDocument {
    // A secret that goes over the end of what is shown must be whole to be found.
    let most = SHOWN_BYTES_MAX + redaction.longest() + CHARACTER_BYTES_MAX;
    let begins = |bytes: &[u8]| bytes.get(..bytes.len().min(most)).unwrap_or_default().to_vec();
    let written_head = WrittenText::of_head(&begins(head));
    let written_body = WrittenText::of(&begins(body));
    let (head_text, is_head_cut) = shown(redaction.message(&written_head.text));
    let (body_text, is_body_cut) = shown(redaction.message(&written_body.text));
    MessageDocument {
        head: head_text,
        body: body_text,
        body_bytes: body.len(),
        is_shortened: is_head_cut || is_body_cut || head.len() > most || body.len() > most,
        is_escaped: written_head.is_escaped || written_body.is_escaped,
    }
}

/// The beginning of a text, and whether more of it was there.
fn shown(mut text: String) -> (String, bool) {
    let is_cut = text.len() > SHOWN_BYTES_MAX;
    text.truncate(text.floor_char_boundary(SHOWN_BYTES_MAX));
    (text, is_cut)
}

fn cut(cut: &WireCut) -> CutDocument {
    let (within, bytes, end) = match cut {
        WireCut::Request { bytes, end } => (CutMessage::Request, bytes, end),
        WireCut::Answer { bytes, end } => (CutMessage::Answer, bytes, end),
    };
    let how = match end {
        CutEnd::Finish => CutManner::Finish,
        CutEnd::Reset => CutManner::Reset,
        CutEnd::Silence => CutManner::Silence,
    };
    CutDocument { within, bytes: *bytes, how }
}
