//! One request of a client, watched from its head to the last byte of its answer.

use std::{net::IpAddr, sync::Arc, time::SystemTime};

use hapax_engine::wall_clock;
use hapax_tower::{Handled, Verdict, WantsTenant};
use http::{Method, Request, StatusCode, Version};
use tokio::time::Instant;

use super::{
    Telemetry,
    access_record::AccessRecord,
    active_span::ActiveSpan,
    client_span::state_of,
    span::{AttributeValue, FinishedSpan, SpanKind},
    trace_context::{TraceContext, TraceId},
    tracer::JoinedTrace,
};
use crate::server::Peer;

/// A request that somebody wants to hear of: told when it is dropped, which is when its answer has left.
#[derive(Debug)]
pub(crate) struct RequestObservation {
    telemetry: Arc<Telemetry>,
    began_at: SystemTime,
    began: Instant,
    method: Method,
    client: IpAddr,
    trace_id: Option<TraceId>,
    /// What a span says beside; `None` if its trace is not recorded.
    span: Option<ServerSpan>,
    labels: Arc<[String]>,
    handled: Option<Handled>,
    status: Option<StatusCode>,
    bytes: u64,
}

/// What only a recorded request has to remember.
#[derive(Debug)]
struct ServerSpan {
    joined: JoinedTrace,
    trace_state: String,
    path: String,
    scheme: &'static str,
    version: Version,
}

impl RequestObservation {
    pub(super) fn begin<B>(
        telemetry: &Arc<Telemetry>,
        request: &mut Request<B>,
        joined: Option<JoinedTrace>,
        peer: &Peer,
    ) -> Box<Self> {
        let trace_id = match joined {
            Some(joined) => Some(joined.own.trace_id),
            None => TraceContext::of(request.headers()).map(|caller| caller.trace_id),
        };
        let span = joined.filter(|joined| joined.own.is_sampled).map(|joined| ServerSpan {
            joined,
            trace_state: state_of(request.headers()),
            path: request.uri().path().to_owned(),
            scheme: if peer.is_secure() { "https" } else { "http" },
            version: request.version(),
        });
        if let (Some(span), Some(tracer)) = (&span, &telemetry.tracer) {
            let active = ActiveSpan::of_request(tracer, span.joined.own);
            request.extensions_mut().insert(active);
        }
        request.extensions_mut().insert(WantsTenant);
        Box::new(Self {
            telemetry: Arc::clone(telemetry),
            began_at: wall_clock(),
            began: Instant::now(),
            method: request.method().clone(),
            client: peer.address().ip(),
            trace_id,
            span,
            labels: Arc::default(),
            handled: None,
            status: None,
            bytes: 0,
        })
    }

    /// What the layer did with it, whose routes have these labels.
    pub(crate) fn handled(&mut self, handled: Handled, labels: &Arc<[String]>) {
        self.handled = Some(handled);
        self.labels = Arc::clone(labels);
    }

    /// What its client is told.
    pub(crate) fn answered(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// More of the answer is on its way.
    pub(crate) fn handed_on(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn verdict(&self) -> &'static str {
        self.handled.map_or(UNHANDLED, |handled| handled.verdict.as_str())
    }

    fn code(&self) -> Option<&'static str> {
        match self.handled?.verdict {
            Verdict::Refused(code) | Verdict::Unanswered(code) => Some(code.code()),
            Verdict::Executed
            | Verdict::TakenOver
            | Verdict::Queued
            | Verdict::Replayed
            | Verdict::Busy
            | Verdict::InDoubt
            | Verdict::Mismatch
            | Verdict::Gone
            | Verdict::Undecided
            | Verdict::Unprotected
            | Verdict::Passed
            | Verdict::PassedKeyless
            | Verdict::Page => None,
        }
    }

    fn access_record(&self) -> AccessRecord {
        let operation = self.handled.and_then(|handled| handled.operation);
        AccessRecord {
            at: self.began_at,
            method: self.method.clone(),
            status: self.status,
            verdict: self.verdict(),
            code: self.code(),
            duration: self.began.elapsed(),
            bytes: self.bytes,
            tenant: operation.and_then(|operation| operation.tenant),
            operation: operation.map(|operation| operation.id),
            client: self.client,
            trace_id: self.trace_id,
            labels: Arc::clone(&self.labels),
            route: self.handled.map(|handled| handled.route),
        }
    }

    fn finished(&self, span: ServerSpan) -> FinishedSpan {
        let method = self.method.as_str();
        let label = self.handled.and_then(|handled| self.labels.get(handled.route));
        let template = label.and_then(|label| label.split_once(' ')).map(|(_, path)| path);
        let name = template.map_or_else(|| method.to_owned(), |path| format!("{method} {path}"));
        let mut attributes: Vec<(_, AttributeValue)> = vec![
            ("http.request.method", method.to_owned().into()),
            ("url.path", span.path.into()),
            ("url.scheme", span.scheme.into()),
            ("network.protocol.version", protocol(span.version).into()),
            ("client.address", self.client.to_string().into()),
            ("hapax.verdict", self.verdict().into()),
        ];
        attributes.extend(template.map(|path| ("http.route", path.to_owned().into())));
        attributes.extend(label.map(|label| ("hapax.route", label.clone().into())));
        attributes.extend(self.code().map(|code| ("hapax.code", code.into())));
        if let Some(operation) = self.handled.and_then(|handled| handled.operation) {
            attributes.push(("hapax.operation.id", operation.id.to_string().into()));
            let tenant = operation.tenant.map(|tenant| ("hapax.tenant", tenant.to_string().into()));
            attributes.extend(tenant);
        }
        let failed = match self.status {
            Some(status) => {
                attributes.push(("http.response.status_code", i64::from(status.as_u16()).into()));
                let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
                attributes.push(("http.response.body.size", bytes.into()));
                status.is_server_error().then(|| AttributeValue::from(status.as_u16().to_string()))
            }
            None => Some("client_gone".into()),
        };
        let is_error = failed.is_some();
        attributes.extend(failed.map(|failed| ("error.type", failed)));
        FinishedSpan {
            context: span.joined.own,
            parent: span.joined.caller,
            trace_state: span.trace_state,
            link: None,
            kind: SpanKind::Server,
            name,
            began_at: self.began_at,
            duration: self.began.elapsed(),
            attributes,
            is_error,
        }
    }
}

/// What is said of requests that the layer never saw, as metrics say it.
const UNHANDLED: &str = "unhandled";

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        Version::HTTP_2 => "2",
        _ => "1.1",
    }
}

impl Drop for RequestObservation {
    fn drop(&mut self) {
        if let Some(access_log) = &self.telemetry.access_log {
            access_log.offer(self.access_record());
        }
        if let Some(span) = self.span.take()
            && let Some(tracer) = &self.telemetry.tracer
        {
            tracer.spans.offer(self.finished(span));
        }
    }
}
