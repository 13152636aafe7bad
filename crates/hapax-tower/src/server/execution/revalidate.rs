//! Whether somebody may still hear what is stored, asked anew where a route wants that.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Response, request::Parts};
use tokio::time::timeout;

use crate::{
    body::Body,
    server::{
        layer::Site,
        requests::{
            arrival::KeyedRequest, caller_signals::CallerSignals, headers, tenancy::Caller,
        },
        responses::{answer::TRY_AGAIN, code::Code, problem::Problem},
        service::Judged,
        verdict::Verdict,
    },
};

/// Says whether a caller may still hear what is stored for it.
///
/// It is asked each time before anything is told from the store: a replay, also at the end of a
/// wait, that somebody is at work or nobody knows, and what the address of an operation shows.
/// Nothing it says is kept.
///
/// ```
/// use bytes::Bytes;
/// use hapax_tower::{Caller, Protection, Revalidated, Revalidator};
/// use http::Response;
///
/// # async fn is_locked(_caller: &Caller) -> bool { false }
/// let revalidator = Revalidator::from_fn(async |caller: Caller| {
///     if is_locked(&caller).await {
///         return Revalidated::Refused(Response::new(Bytes::from("this account is locked")));
///     }
///     Revalidated::May
/// });
/// let protection = Protection { revalidate: Some(revalidator), ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Clone)]
pub struct Revalidator(Arc<RevalidateFn>);

type RevalidateFn = dyn Fn(Caller) -> Revalidating + Send + Sync;
type Revalidating = Pin<Box<dyn Future<Output = Revalidated> + Send>>;

/// Whether a caller may still hear what is stored.
#[derive(Debug)]
pub enum Revalidated {
    /// It may.
    May,
    /// It may not: it is told this instead, and nothing of what is stored.
    Refused(Response<Bytes>),
    /// That cannot be found out now: 503.
    CannotAsk,
}

/// Longest time the answer may take.
const REVALIDATE_TIME_MAX: Duration = Duration::from_secs(10);

impl Revalidator {
    /// A revalidator that asks by calling this. Without an answer in ten seconds the caller hears
    /// 503.
    pub fn from_fn<F>(ask: impl Fn(Caller) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Revalidated> + Send + 'static,
    {
        Self(Arc::new(move |caller| Box::pin(ask(caller))))
    }

    /// How somebody is refused who may not hear; `None` if it may.
    pub(crate) async fn refusal(
        &self,
        caller: Caller,
        said: CallerSignals,
        site: &Site,
    ) -> Option<Judged> {
        let within = said.cut(REVALIDATE_TIME_MAX);
        match timeout(within, (self.0)(caller)).await.unwrap_or(Revalidated::CannotAsk) {
            Revalidated::May => None,
            Revalidated::Refused(told) => {
                let mut told = told.map(Body::from);
                headers::strip_hops_and_ours(told.headers_mut());
                Some((told, Verdict::Refused(Code::CallerRefused)))
            }
            Revalidated::CannotAsk => {
                let detail = "Nothing was run, and nothing is told. Ask again.";
                let problem = Problem::new(Code::CallerUnverifiable, detail);
                let verdict = Verdict::Refused(problem.code);
                Some((problem.retry_after(TRY_AGAIN).into_response(site), verdict))
            }
        }
    }
}

impl fmt::Debug for Revalidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Revalidator(..)")
    }
}

/// Somebody who is asked for before anything is told from the store.
pub(crate) struct ReplayListener {
    revalidator: Revalidator,
    caller: Caller,
    said: CallerSignals,
    span: tracing::Span,
}

impl ReplayListener {
    /// `None` where the route does not ask.
    pub(crate) fn of(arrival: &KeyedRequest) -> Option<Self> {
        let revalidator = arrival.protection.revalidate.clone()?;
        let (said, span) = (arrival.said, arrival.span.clone());
        Some(Self { revalidator, caller: Caller::of(&arrival.parts), said, span })
    }

    /// What it hears: this, unless this is told from the store and it may not hear that.
    pub(crate) async fn hear(self, (response, verdict): Judged, site: &Site) -> Judged {
        if !is_told_from_the_store(&response, verdict) {
            return (response, verdict);
        }
        match self.revalidator.refusal(self.caller, self.said, site).await {
            None => (response, verdict),
            Some((refusal, refused)) => {
                self.span.record("decision", refused.as_str());
                (refusal, refused)
            }
        }
    }
}

/// Who looks at the address of an operation, as [`Revalidator::refusal`] wants it.
pub(crate) async fn refusal_of_all(
    revalidators: Vec<&Revalidator>,
    parts: &Parts,
    site: &Site,
) -> Option<Response<Body>> {
    for revalidator in revalidators {
        let refused = revalidator.refusal(Caller::of(parts), CallerSignals::default(), site).await;
        if let Some((refusal, _)) = refused {
            return Some(refusal);
        }
    }
    None
}

fn is_told_from_the_store(response: &Response<Body>, verdict: Verdict) -> bool {
    match verdict {
        Verdict::Replayed
        | Verdict::Busy
        | Verdict::InDoubt
        | Verdict::Mismatch
        | Verdict::Gone => true,
        // An attempt that was overtaken is answered with what is stored.
        Verdict::Executed | Verdict::TakenOver | Verdict::Unanswered(_) => {
            response.headers().contains_key(headers::REPLAYED)
        }
        Verdict::Queued
        | Verdict::Refused(_)
        | Verdict::Undecided
        | Verdict::Unprotected
        | Verdict::Passed
        | Verdict::PassedKeyless
        | Verdict::Page => false,
    }
}
