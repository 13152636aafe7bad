//! Metrics in the words of OTLP, under the names that `/metrics` has for them:
//! `opentelemetry/proto/metrics/v1/metrics.proto`.

use hapax::wall_clock;
use hapax_gateway::admin::{MetricFamily, MetricKind, MetricSample, SampleValue};

use super::{TelemetrySource, nanos, protobuf::ProtoMessage};

/// What a collector is told of these metrics, as they are now: an `ExportMetricsServiceRequest`.
pub(super) fn request(origin: &TelemetrySource, families: &[MetricFamily]) -> Vec<u8> {
    let times = Times { started: nanos(origin.started_at), now: nanos(wall_clock()) };
    let mut request = ProtoMessage::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |resource| origin.resource(resource));
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, TelemetrySource::scope);
            for family in families {
                scope_metrics.message(2, |metric| write(metric, family, times));
            }
        });
    });
    request.into_bytes()
}

/// When counting began, and when it was looked.
#[derive(Clone, Copy)]
struct Times {
    started: u64,
    now: u64,
}

/// Counts are of everything since the start, not since they were last told.
const CUMULATIVE: u64 = 2;

fn write(metric: &mut ProtoMessage, family: &MetricFamily, times: Times) {
    metric.text(1, &family.name);
    metric.text(2, &family.help);
    if family.name.ends_with("_seconds") {
        metric.text(3, "s");
    }
    let points = |data: &mut ProtoMessage| {
        for sample in &family.samples {
            data.message(1, |point| write_point(point, sample, times));
        }
    };
    match family.kind {
        MetricKind::Gauge => metric.message(5, points),
        MetricKind::Counter => metric.message(7, |sum| {
            points(sum);
            sum.number(2, CUMULATIVE);
            sum.number(3, u64::from(true));
        }),
        MetricKind::Histogram => metric.message(9, |histogram| {
            points(histogram);
            histogram.number(2, CUMULATIVE);
        }),
    }
}

fn write_point(point: &mut ProtoMessage, sample: &MetricSample, times: Times) {
    point.fixed(2, times.started);
    point.fixed(3, times.now);
    let labels = match &sample.value {
        SampleValue::Real(value) => {
            point.real(4, *value);
            LABELS_OF_A_NUMBER
        }
        SampleValue::Whole(value) => {
            point.fixed_of_several(6, *value);
            LABELS_OF_A_NUMBER
        }
        SampleValue::Spread { bounds, counts, sum } => {
            point.fixed(4, counts.iter().sum());
            point.real(5, *sum);
            point.packed(6, counts.iter().map(|count| count.to_le_bytes()));
            point.packed(7, bounds.iter().map(|bound| bound.to_le_bytes()));
            LABELS_OF_A_SPREAD
        }
    };
    for (name, value) in &sample.labels {
        point.message(labels, |label| {
            label.text(1, name);
            label.message(2, |any| any.text(1, value));
        });
    }
}

const LABELS_OF_A_NUMBER: u32 = 7;
const LABELS_OF_A_SPREAD: u32 = 9;
