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
#[derive(Clone)]
pub struct Prober(Arc<ProbeFn>);

type ProbeFn = dyn Fn(Asked) -> Probing + Send + Sync;
type Probing = Pin<Box<dyn Future<Output = Probed> + Send>>;

/// What a prober is asked about.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which operation.
    pub operation: Operation,
    /// With which request. It has no credentials if its first owner is gone.
    pub request: Request<Bytes>,
}

/// What a prober found out.
#[derive(Debug)]
pub enum Probed {
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
    pub fn from_fn<F>(probe: impl Fn(Asked) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Probed> + Send + 'static,
    {
        Self(Arc::new(move |asked| Box::pin(probe(asked))))
    }

    pub(crate) fn ask(&self, asked: Asked) -> impl Future<Output = Probed> + Send + use<> {
        (self.0)(asked)
    }
}

impl fmt::Debug for Prober {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prober(..)")
    }
}
