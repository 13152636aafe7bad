//! What an access log says of a request.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use hapax_core::{Fingerprint, OperationId};
use http::{Method, StatusCode};

use super::trace_context::TraceId;

/// What became of one request, without anything that its client would not want in a log: no key, no query, no
/// header and no body.
#[derive(Debug, Clone)]
pub struct AccessRecord {
    /// When its head was complete.
    pub at: SystemTime,
    /// Its method.
    pub method: Method,
    /// What it was answered with; `None` if its client left before.
    pub status: Option<StatusCode>,
    /// What the layer did; `unhandled` if it was never asked.
    pub verdict: &'static str,
    /// Why it was refused, or came to no answer.
    pub code: Option<&'static str>,
    /// From its head to the last byte of its answer.
    pub duration: Duration,
    /// Bytes of the answer's body that were handed on.
    pub bytes: u64,
    /// What logs call its tenant.
    pub tenant: Option<Fingerprint>,
    /// Which operation it asked for.
    pub operation: Option<OperationId>,
    /// Where its connection came from.
    pub client: IpAddr,
    /// Which trace it belongs to.
    pub trace_id: Option<TraceId>,
    pub(super) labels: Arc<[String]>,
    pub(super) route: Option<usize>,
}

impl AccessRecord {
    /// The route it was treated by, as metrics name it; `None` if nobody looked for one.
    pub fn route(&self) -> Option<&str> {
        self.labels.get(self.route?).map(String::as_str)
    }
}
