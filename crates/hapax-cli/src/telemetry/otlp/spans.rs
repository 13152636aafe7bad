//! Spans in the words of OTLP: `opentelemetry/proto/trace/v1/trace.proto`.

use hapax_gateway::telemetry::{AttributeValue, FinishedSpan, SpanKind, TraceContext};

use super::{TelemetrySource, nanos, protobuf::ProtoMessage};

/// What a collector is told of these spans: an `ExportTraceServiceRequest`.
pub(super) fn request(origin: &TelemetrySource, spans: &[FinishedSpan]) -> Vec<u8> {
    let mut request = ProtoMessage::default();
    request.message(1, |resource_spans| {
        resource_spans.message(1, |resource| origin.resource(resource));
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, TelemetrySource::scope);
            spans.iter().for_each(|span| scope_spans.message(2, |message| write(message, span)));
        });
    });
    request.into_bytes()
}

fn write(message: &mut ProtoMessage, span: &FinishedSpan) {
    message.bytes(1, span.context.trace_id.as_bytes());
    message.bytes(2, span.context.span_id.as_bytes());
    message.text(3, &span.trace_state);
    if let Some(parent) = span.parent {
        message.bytes(4, parent.as_bytes());
    }
    message.text(5, &span.name);
    message.number(
        6,
        match span.kind {
            SpanKind::Server => 2,
            SpanKind::Client => 3,
            SpanKind::Consumer => 5,
        },
    );
    message.fixed(7, nanos(span.began_at));
    message.fixed(8, nanos(span.began_at + span.duration));
    for (name, value) in &span.attributes {
        message.message(9, |attribute| write_attribute(attribute, name, value));
    }
    if let Some(link) = &span.link {
        message.message(13, |message| write_link(message, link));
    }
    if span.is_error {
        message.message(15, |status| status.number(3, STATUS_ERROR));
    }
    message.flags(16, u32::from(span.context.is_sampled));
}

const STATUS_ERROR: u64 = 2;

fn write_link(message: &mut ProtoMessage, to: &TraceContext) {
    message.bytes(1, to.trace_id.as_bytes());
    message.bytes(2, to.span_id.as_bytes());
    message.flags(6, u32::from(to.is_sampled));
}

fn write_attribute(attribute: &mut ProtoMessage, name: &str, value: &AttributeValue) {
    attribute.text(1, name);
    attribute.message(2, |any| match value {
        AttributeValue::Text(text) => any.text(1, text),
        AttributeValue::Word(word) => any.text(1, word),
        AttributeValue::Number(number) => any.signed_of_several(3, *number),
    });
}
