//! The protected execution, in a task of its own: it goes on when its client does not.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{Body as StoredBody, Ended, OperationId, Outcome, Store};
use hapax_engine::{Permit, SettleError, Settled};
use http::{Request, Response, response};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

use super::{
    answer,
    capture::Captured,
    code::Code,
    failed::Failed,
    headers,
    inner_words::{Worth, worth},
    layer::Site,
    options::Protection,
    problem::Problem,
    produce::{Answer, pump},
    recover::{Before, Turn},
    said::Said,
};
use crate::{body::Body, http_service::HttpService};

/// One attempt: the right to make it, and what is to be done.
pub(crate) struct Unit<S: Store> {
    pub(crate) permit: Permit<S>,
    pub(crate) request: Request<Bytes>,
    pub(crate) protection: Arc<Protection>,
    pub(crate) said: Said,
    pub(crate) site: Arc<Site>,
}

/// Where the answer goes, if somebody waits for it.
pub(crate) type Reply = Option<oneshot::Sender<Response<Body>>>;

impl<S: Store> Unit<S> {
    /// Runs it, stores how it ended, then answers.
    pub(crate) async fn run<Inner>(mut self, inner: Inner, mut reply: Reply)
    where
        Inner: HttpService,
    {
        let request = self.marked_request();
        let before = if self.permit.follows_an_owner() { Before::Unknown } else { Before::Nothing };
        let said = self.onward(before, &reply);
        let turn = if self.recovers() {
            // Boxed, so that only routes that recover pay for its size.
            Box::pin(self.persist(inner, request, said, before, &mut reply)).await
        } else {
            match self.turn(inner, request, said, before).await {
                Turn::Doubt { failed, .. } => Turn::Known(Err(failed)),
                known @ Turn::Known(_) => known,
            }
        };
        match turn {
            Turn::Known(Ok(Answer { parts, body: Captured::Whole(body) })) => {
                self.answer(parts, body, reply).await;
            }
            Turn::Known(Ok(Answer { parts, body: Captured::Larger { read, rest } })) => {
                self.pass_on(parts, read, rest, reply).await;
            }
            Turn::Known(Err(failed)) => self.fail(failed, reply).await,
            Turn::Doubt { failed, pause_min } => self.leave(failed, pause_min, reply).await,
        }
    }

    /// The request, telling the service which attempt it is.
    fn marked_request(&mut self) -> Request<Bytes> {
        let attempt = self.permit.attempt();
        let mut request = std::mem::replace(&mut self.request, Request::new(Bytes::new()));
        headers::add_fence(request.headers_mut(), attempt.fence);
        request.extensions_mut().insert(attempt);
        request.extensions_mut().insert(self.permit.record().operation.clone());
        request
    }

    /// What the service is told: the words of the caller, or our own where nobody asked for this
    /// now and it is repeated because its owner vanished.
    fn onward(&self, before: Before, reply: &Reply) -> Said {
        match (before, reply) {
            (Before::Unknown, None) => {
                Said::repeating(self.protection.timeout, self.protection.grpc_timeout)
            }
            (Before::Unknown | Before::Nothing, _) => self.said,
        }
    }

    /// Runs it, and does not stop before it is known what happened, unless somebody further out
    /// repeats it. The client hears what is known when its time is over.
    async fn persist<Inner>(
        &self,
        inner: Inner,
        request: Request<Bytes>,
        said: Said,
        before: Before,
        reply: &mut Reply,
    ) -> Turn
    where
        Inner: HttpService,
    {
        let answer_by = Instant::now() + self.protection.timeout;
        let mut first = std::pin::pin!(self.turn(inner.clone(), request.clone(), said, before));
        let turn = match timeout_at(answer_by, &mut first).await {
            Ok(turn) => turn,
            Err(_elapsed) => {
                self.tell_unknown(Failed::TimedOut, reply);
                first.await
            }
        };
        let (unknown, pause_min) = match turn {
            known @ Turn::Known(_) => return known,
            // That nothing was sent now says nothing about the owner before.
            Turn::Doubt { failed: Failed::NotStarted | Failed::TooLate, pause_min } => {
                (Failed::NotRecovered, pause_min)
            }
            Turn::Doubt { failed, pause_min } => (failed, pause_min),
        };
        if self.said.retried_further_out {
            return Turn::Doubt { failed: unknown, pause_min };
        }
        tracing::warn!(code = unknown.code().code(), "no answer; finding out what happened");
        let mut finding = std::pin::pin!(self.find_out(inner, request, unknown, pause_min));
        Turn::Known(match timeout_at(answer_by, &mut finding).await {
            Ok(known) => known,
            Err(_elapsed) => {
                self.tell_unknown(unknown, reply);
                finding.await
            }
        })
    }

    /// Answers a client that cannot wait longer.
    fn tell_unknown(&self, unknown: Failed, reply: &mut Reply) {
        let told = unknown.while_finding_out(self.permit.attempt().id);
        send(reply.take(), told.into_response(&self.site));
    }

    async fn answer(self, mut parts: response::Parts, body: Bytes, reply: Reply) {
        // A copy of its own: these bytes may be a slice of a buffer that is many times larger, and
        // a record in memory would keep all of it.
        let kept = StoredBody::Kept(Bytes::copy_from_slice(&body));
        let outcome = outcome(&parts, kept, &self.protection);
        let ended = match worth(&parts) {
            Worth::NothingRan => Ended::NothingSent { told: outcome },
            Worth::Outcome | Worth::Unknown => Ended::Answered(outcome),
        };
        headers::strip_ours(&mut parts.headers);
        let first = Response::from_parts(parts, Body::from(body));
        self.settle(ended, first, reply).await;
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
                let ended = failed.ended(self.permit.attempt().id, &self.site);
                tracing::warn!(code = failed.code().code(), "a response broke off half-way");
                let _ = self.permit.settle(ended).await;
            }
        }
    }

    async fn fail(self, failed: Failed, reply: Reply) {
        tracing::warn!(code = failed.code().code(), "a protected service gave no answer");
        let id = self.permit.attempt().id;
        let told = failed.problem(id).into_response(&self.site);
        let ended = failed.ended(id, &self.site);
        self.settle(ended, told, reply).await;
    }

    /// Leaves an operation of unknown fate to whoever asks next, or to the sweeper if nobody does.
    async fn leave(self, failed: Failed, pause: Duration, reply: Reply) {
        let (code, id) = (failed.code().code(), self.permit.attempt().id);
        tracing::warn!(code, "no answer; whoever repeats the request finds out what happened");
        let told = failed.left_to_the_next(id, pause).into_response(&self.site);
        if self.permit.record().request().is_some() {
            let left = self.permit.leave(pause).await;
            send(reply, settled(left, &self.site, id, told));
        } else {
            // Without its request a sweeper would forget the attempt; a doubt stays until somebody
            // asks, who then takes over all the same.
            let ended = failed.ended(id, &self.site);
            self.settle(ended, told, reply).await;
        }
    }

    /// Stores the end, and answers with `first` if that is what counts.
    async fn settle(self, ended: Ended, first: Response<Body>, reply: Reply) {
        let (site, id) = (self.site, self.permit.attempt().id);
        send(reply, settled(self.permit.settle(ended).await, &site, id, first));
    }
}

/// What a client hears once an end is stored, or is not.
fn settled(
    stored: Result<Settled, SettleError>,
    site: &Site,
    id: OperationId,
    first: Response<Body>,
) -> Response<Body> {
    match stored {
        Ok(Settled::Done(record)) => {
            let mut response = first;
            if record.outcome().is_some() {
                headers::add_expiry(response.headers_mut(), record.expires_at);
            }
            response
        }
        Ok(Settled::Superseded(record)) => answer::superseded(site, id, record.as_deref()),
        Err(error) => {
            tracing::error!(%error, %id, "an outcome could not be recorded");
            let detail = "The request may have been carried out. Ask again with the same key.";
            Problem::new(Code::OutcomeNotRecorded, detail)
                .operation(id)
                .retry_after(Duration::from_secs(1))
                .into_response(site)
        }
    }
}

/// A client that hung up needs no answer.
fn send(reply: Reply, response: Response<Body>) {
    if let Some(reply) = reply {
        let _ = reply.send(response);
    }
}

/// The outcome to store; what is beyond the store's limits is not kept, but known to have been.
pub(crate) fn outcome(
    parts: &response::Parts,
    body: StoredBody,
    protection: &Protection,
) -> Outcome {
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
