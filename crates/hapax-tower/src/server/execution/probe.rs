//! Asking whether an operation happened.

use std::{fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use hapax_core::Operation;
use http::{Request, Response};

/// Finds out whether an operation happened that nobody answered for.
///
/// It is asked before anything is sent again, and again later while it does not know. What it says
/// happened is never run again. What it says did not happen is, but only if it was asked when nothing
/// that was sent before could still be at work ([`Policy::works_for`](hapax_core::Policy::works_for)):
/// whoever looks a key up finds nothing while its request still runs.
///
/// ```
/// use bytes::Bytes;
/// use hapax_tower::{ProbeAnswer, ProbeRequest, Prober};
/// use http::Response;
///
/// # async fn find_charge(_key: &str) -> std::io::Result<Option<Bytes>> { Ok(None) }
/// let prober = Prober::from_fn(async |asked: ProbeRequest| {
///     match find_charge(asked.operation.key().as_str()).await {
///         Ok(Some(charge)) => ProbeAnswer::Happened(Response::new(charge)),
///         Ok(None) => ProbeAnswer::DidNotHappen,
///         Err(_) => ProbeAnswer::Unknown,
///     }
/// });
/// # drop(prober);
/// ```
#[derive(Clone)]
pub struct Prober(Arc<ProbeFn>);

type ProbeFn = dyn Fn(ProbeRequest) -> Probing + Send + Sync;
type Probing = Pin<Box<dyn Future<Output = ProbeAnswer> + Send>>;

/// What a prober is asked about.
#[derive(Debug, Clone)]
pub struct ProbeRequest {
    /// Which operation.
    pub operation: Operation,
    /// With which request. It has no credentials if its first owner is gone.
    pub request: Request<Bytes>,
}

/// What a prober found out.
#[derive(Debug)]
pub enum ProbeAnswer {
    /// It happened, and this is what it should be answered with.
    Happened(Response<Bytes>),
    /// It did not happen. Believed once nothing that was sent before can still be at work.
    DidNotHappen,
    /// What was sent before is still being worked on; to be asked again.
    AtWork,
    /// That cannot be told now.
    Unknown,
}

impl Prober {
    /// A prober that asks by calling this.
    pub fn from_fn<F>(probe: impl Fn(ProbeRequest) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ProbeAnswer> + Send + 'static,
    {
        Self(Arc::new(move |asked| Box::pin(probe(asked))))
    }

    pub(crate) fn ask(
        &self,
        asked: ProbeRequest,
    ) -> impl Future<Output = ProbeAnswer> + Send + use<> {
        (self.0)(asked)
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prober(..)")
    }
}
