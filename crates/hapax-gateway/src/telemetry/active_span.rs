//! The span under which something is done now: an extension of the request it is done for.

use std::sync::Arc;

use tokio::time::Instant;

use super::{outlet::Outlet, span::FinishedSpan, trace_context::TraceContext, tracer::Tracer};

/// The span that whatever is sent for a request belongs to.
#[derive(Debug, Clone)]
pub(crate) struct ActiveSpan {
    pub(super) context: TraceContext,
    pub(super) spans: Outlet<FinishedSpan>,
    /// What ends with the last who has this.
    _run: Option<Arc<BackgroundRun>>,
}

impl ActiveSpan {
    /// The span of a client's request.
    pub(super) fn of_request(tracer: &Tracer, context: TraceContext) -> Self {
        Self { context, spans: tracer.spans.clone(), _run: None }
    }

    /// The span of something nobody waits for.
    pub(super) fn of_background(
        tracer: &Tracer,
        context: TraceContext,
        run: BackgroundRun,
    ) -> Self {
        Self { context, spans: tracer.spans.clone(), _run: Some(Arc::new(run)) }
    }
}

/// Something that nobody waits for: told when it is dropped.
#[derive(Debug)]
pub(super) struct BackgroundRun {
    spans: Outlet<FinishedSpan>,
    span: Option<FinishedSpan>,
    began: Instant,
}

impl BackgroundRun {
    pub(super) fn new(spans: Outlet<FinishedSpan>, span: FinishedSpan) -> Self {
        Self { spans, span: Some(span), began: Instant::now() }
    }
}

impl Drop for BackgroundRun {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            span.duration = self.began.elapsed();
            self.spans.offer(span);
        }
    }
}
