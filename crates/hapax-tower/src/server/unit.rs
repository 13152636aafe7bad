//! The protected execution, in a task of its own: it goes on when its client does not.

use std::{future::poll_fn, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{Body as StoredBody, Ended, Outcome, Store};
use hapax_engine::{Permit, Settled};
use http::{Request, Response, response};
use http_body_util::BodyExt;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tower_service::Service;

use super::{
    answer,
    capture::{Captured, capture},
    code::Code,
    headers,
    layer::Site,
    nothing_sent::NothingSent,
    options::Protection,
    problem::Problem,
};
use crate::body::{Body, BoxError};

/// One attempt: the right to make it, and what is to be done.
pub(crate) struct Unit<S: Store> {
    pub(crate) permit: Permit<S>,
    pub(crate) request: Request<Body>,
    pub(crate) protection: Arc<Protection>,
    pub(crate) site: Site,
}

/// Where the answer goes, if somebody waits for it.
pub(crate) type Reply = Option<oneshot::Sender<Response<Body>>>;

impl<S: Store> Unit<S> {
    /// Runs it, stores how it ended, then answers.
    pub(crate) async fn run<Inner, B>(mut self, inner: Inner, reply: Reply)
    where
        Inner: Service<Request<Body>, Response = Response<B>>,
        Inner::Error: Into<BoxError>,
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let attempt = self.permit.attempt();
        let mut request = std::mem::replace(&mut self.request, Request::new(Body::empty()));
        headers::add_fence(request.headers_mut(), attempt.fence);
        request.extensions_mut().insert(attempt);
        request.extensions_mut().insert(self.permit.record().operation.clone());
        let work = produce(inner, request, self.protection.response_bytes_max);
        let work = AssertUnwindSafe(work).catch_unwind();
        match timeout(self.protection.timeout, work).await {
            Ok(Ok(Ok((parts, Captured::Whole(body))))) => self.answer(parts, body, reply).await,
            Ok(Ok(Ok((parts, Captured::Larger { read, rest })))) => {
                self.pass_on(parts, read, rest, reply).await;
            }
            Ok(Ok(Err(failed))) => self.fail(failed, reply).await,
            Ok(Err(_panic)) => self.fail(Failed::Panicked, reply).await,
            Err(_elapsed) => self.fail(Failed::TimedOut, reply).await,
        }
    }

    async fn answer(self, mut parts: response::Parts, body: Bytes, reply: Reply) {
        let outcome = outcome(&parts, StoredBody::Kept(body.clone()), &self.protection);
        headers::strip_ours(&mut parts.headers);
        let first = Response::from_parts(parts, Body::from(body));
        self.settle(Ended::Answered(outcome), first, reply).await;
    }

    /// Hands a response that is too large to keep to the client while it comes, and stores at its
    /// end that there was one.
    async fn pass_on(self, mut parts: response::Parts, read: Bytes, rest: Body, reply: Reply) {
        let (pipe, piped) = mpsc::channel(1);
        let mut outcome_parts = parts.clone();
        outcome_parts.extensions.clear();
        headers::strip_ours(&mut parts.headers);
        headers::add_expiry(&mut parts.headers, self.permit.record().expires_at);
        send(reply, Response::from_parts(parts, Body::piped(piped)));
        let (stall, mut pipe) = (self.protection.timeout, Some(pipe));
        match pump(read, rest, &mut pipe, stall).await {
            Ok(len) => {
                let body = StoredBody::NotKept { len };
                let outcome = outcome(&outcome_parts, body, &self.protection);
                let ended = Ended::Answered(outcome);
                if let (Ok(_), Some(open)) = (self.permit.settle(ended).await, pipe) {
                    let _ = timeout(stall, open.send(None)).await;
                }
            }
            Err(failed) => {
                let ended = failed.ended(&self.site);
                tracing::warn!(code = failed.code().code(), "a response broke off half-way");
                let _ = self.permit.settle(ended).await;
            }
        }
    }

    async fn fail(self, failed: Failed, reply: Reply) {
        tracing::warn!(code = failed.code().code(), "a protected service gave no answer");
        let told = failed.problem().into_response(&self.site);
        let ended = failed.ended(&self.site);
        self.settle(ended, told, reply).await;
    }

    /// Stores the end, and answers with `first` if that is what counts.
    async fn settle(self, ended: Ended, first: Response<Body>, reply: Reply) {
        let (site, id) = (self.site, self.permit.attempt().id);
        let response = match self.permit.settle(ended).await {
            Ok(Settled::Done(record)) => {
                let mut response = first;
                if record.outcome().is_some() {
                    headers::add_expiry(response.headers_mut(), record.expires_at);
                }
                response
            }
            Ok(Settled::Superseded(record)) => answer::superseded(&site, id, record.as_deref()),
            Err(error) => {
                tracing::error!(%error, %id, "an outcome could not be recorded");
                let detail = "The request may have been carried out. Ask again with the same key.";
                Problem::new(Code::OutcomeNotRecorded, detail)
                    .operation(id)
                    .retry_after(Duration::from_secs(1))
                    .into_response(&site)
            }
        };
        send(reply, response);
    }
}

/// A client that hung up needs no answer.
fn send(reply: Reply, response: Response<Body>) {
    if let Some(reply) = reply {
        let _ = reply.send(response);
    }
}

async fn produce<Inner, B>(
    mut inner: Inner,
    request: Request<Body>,
    cap: usize,
) -> Result<(response::Parts, Captured), Failed>
where
    Inner: Service<Request<Body>, Response = Response<B>>,
    Inner::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    poll_fn(|cx| inner.poll_ready(cx)).await.map_err(|error| noted(error, Failed::NotStarted))?;
    let response = inner.call(request).await.map_err(|error| {
        let error = error.into();
        let failed =
            if NothingSent::is_in(&*error) { Failed::NotStarted } else { Failed::Unanswered };
        noted(error, failed)
    })?;
    let (parts, body) = response.into_parts();
    let captured = capture(Body::new(body), cap).await;
    captured.map(|body| (parts, body)).map_err(|error| noted(error, Failed::Unanswered))
}

fn noted(error: impl Into<BoxError>, failed: Failed) -> Failed {
    let error = error.into();
    tracing::warn!(%error, "a protected service failed");
    failed
}

/// Moves the rest of a response to its client; without one it is read all the same, because the
/// service behind it is still at work.
async fn pump(
    read: Bytes,
    mut rest: Body,
    pipe: &mut Option<mpsc::Sender<Option<Bytes>>>,
    stall: Duration,
) -> Result<u64, Failed> {
    let mut len = 0;
    let mut next = Some(read);
    while let Some(chunk) = next {
        len += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if let Some(open) = pipe {
            let taken = timeout(stall, open.send(Some(chunk))).await;
            if !matches!(taken, Ok(Ok(()))) {
                *pipe = None;
            }
        }
        next = loop {
            match timeout(stall, rest.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        break Some(data);
                    }
                }
                Ok(Some(Err(error))) => return Err(noted(error, Failed::Unanswered)),
                Ok(None) => break None,
                Err(_elapsed) => return Err(Failed::TimedOut),
            }
        };
    }
    Ok(len)
}

/// The outcome to store; what is beyond the store's limits is not kept, but known to have been.
fn outcome(parts: &response::Parts, body: StoredBody, protection: &Protection) -> Outcome {
    let status = parts.status.as_u16();
    let len = match &body {
        StoredBody::Kept(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        StoredBody::NotKept { len } => *len,
        _ => 0,
    };
    Outcome::new(status, headers::stored(&parts.headers, protection), body)
        .or_else(|_| Outcome::new(status, Vec::new(), StoredBody::NotKept { len }))
        .unwrap_or_else(|_| Outcome::bare(status))
}

/// How an attempt ended without a complete answer.
#[derive(Debug, Clone, Copy)]
enum Failed {
    NotStarted,
    Unanswered,
    Panicked,
    TimedOut,
}

impl Failed {
    fn code(self) -> Code {
        match self {
            Self::NotStarted => Code::ExecutionNotStarted,
            Self::Unanswered => Code::ExecutionUnanswered,
            Self::Panicked => Code::ExecutionPanicked,
            Self::TimedOut => Code::ExecutionTimedOut,
        }
    }

    fn problem(self) -> Problem {
        match self {
            Self::NotStarted => Problem::new(self.code(), "Nothing was run. Ask again.")
                .retry_after(Duration::from_secs(1)),
            Self::Unanswered | Self::Panicked | Self::TimedOut => {
                Problem::new(self.code(), "Nobody knows whether the operation happened.")
            }
        }
    }

    fn ended(self, site: &Site) -> Ended {
        let told = self.problem().to_outcome(site);
        match self {
            Self::NotStarted => Ended::NothingSent { told },
            Self::Unanswered => Ended::Unanswered { told },
            Self::Panicked | Self::TimedOut => Ended::Interrupted { told },
        }
    }
}
