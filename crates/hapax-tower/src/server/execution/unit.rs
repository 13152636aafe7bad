//! The protected execution, in a task of its own: it goes on when its client does not.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    AnswerMeaning, AttemptAnswer, AttemptEnd, Body as StoredBody, Fence, OperationId, Outcome,
    Recovery, limits::RETRY_AFTER_MAX,
};
use hapax_engine::{Permit, SettleError, Settled};
use http::{HeaderMap, Request, Response, response};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout, timeout_at},
};

use crate::{
    body::{Body, PipedPiece},
    http_service::HttpService,
    server::{
        calls::{CallEnd, is_call, judged_status},
        execution::{
            body_capture::Captured,
            failed_attempt::FailedAttempt,
            recovery::{EarlierAttempt, RecoveryTurn, retry_after},
            service_call::{ServiceResponse, pump},
            status_meaning::{Accepted, accepted, kept},
        },
        layer::Site,
        options::{KeptBody, Protection},
        requests::{caller_signals::CallerSignals, headers, stored_request},
        responses::{answer, code::Code, problem::Problem},
    },
};

/// One attempt: the right to make it, and what is to be done.
pub(crate) struct AttemptRun {
    pub(crate) permit: Permit,
    pub(crate) request: Request<Bytes>,
    pub(crate) protection: Arc<Protection>,
    pub(crate) said: CallerSignals,
    pub(crate) site: Arc<Site>,
    /// Whether its client was told that it will be done, and waits for no answer.
    pub(crate) is_accepted: bool,
    /// Whether something was sent under the present fence.
    pub(crate) is_sent: bool,
    /// From when on nothing that was sent before can still be at work; `None` if nothing was.
    pub(crate) quiet_at: Option<Instant>,
}

/// Where the answer goes, if somebody waits for it.
pub(crate) type Reply = Option<oneshot::Sender<Response<Body>>>;

/// What follows from a complete answer.
enum AfterAnswer {
    /// The end is stored, as what it means.
    Settle(AnswerMeaning),
    /// It was accepted, and is not done yet.
    QueueAgain {
        /// How long the service asked to be left alone.
        pause: Duration,
    },
}

/// A client that may have to be told before anything is known.
pub(crate) struct WaitingClient {
    reply: Reply,
    answer_by: Instant,
    id: OperationId,
    site: Arc<Site>,
}

impl WaitingClient {
    /// Does something, and answers the client if its time is over meanwhile.
    pub(crate) async fn meanwhile<T>(
        &mut self,
        unknown: FailedAttempt,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        if self.reply.is_none() {
            return work.await;
        }
        match timeout_at(self.answer_by, &mut work).await {
            Ok(done) => done,
            Err(_elapsed) => {
                self.tell(unknown);
                work.await
            }
        }
    }

    /// Answers a client that would wait in vain: nothing is decided before `at`.
    pub(crate) fn tell_if_later_than(&mut self, unknown: FailedAttempt, at: Option<Instant>) {
        if at.is_some_and(|at| at > self.answer_by) {
            self.tell(unknown);
        }
    }

    fn tell(&mut self, unknown: FailedAttempt) {
        if let Some(reply) = self.reply.take() {
            let told = unknown.while_finding_out(self.id).in_place_of_an_answer(&self.site);
            send(Some(reply), told);
        }
    }
}

impl AttemptRun {
    /// An attempt of which nothing is sent yet.
    pub(crate) fn new(
        permit: Permit,
        request: Request<Bytes>,
        protection: Arc<Protection>,
        said: CallerSignals,
        site: Arc<Site>,
    ) -> Self {
        let quiet_at = permit.follows_an_owner().then(|| Instant::now() + permit.quiet_in());
        let is_accepted = permit.record().request().is_some_and(stored_request::is_accepted);
        Self { permit, request, protection, said, site, is_accepted, is_sent: false, quiet_at }
    }

    /// Runs it, stores how it ended, then answers.
    pub(crate) async fn run<Inner>(mut self, inner: Inner, mut reply: Reply)
    where
        Inner: HttpService,
    {
        let before = if self.permit.follows_an_owner() {
            EarlierAttempt::Unknown
        } else {
            EarlierAttempt::Nothing
        };
        let said = self.onward(&reply);
        let turn = if self.recovers(before) {
            // Boxed, so that only routes that recover pay for its size.
            Box::pin(self.persist(inner, said, before, &mut reply)).await
        } else {
            match self.turn(inner, said, before).await {
                RecoveryTurn::Doubt { failed, .. } => RecoveryTurn::Known(Err(failed)),
                known @ RecoveryTurn::Known(_) => known,
            }
        };
        match turn {
            RecoveryTurn::Known(Ok(ServiceResponse { parts, body: Captured::Whole(body) })) => {
                self.answer(parts, body, reply).await;
            }
            RecoveryTurn::Known(Ok(ServiceResponse {
                parts,
                body: Captured::Larger { read, rest },
            })) => {
                self.pass_on(parts, read, rest, reply).await;
            }
            RecoveryTurn::Known(Err(failed @ FailedAttempt::NotStarted)) if self.is_accepted => {
                let told =
                    failed.problem(self.permit.attempt().id).in_place_of_an_answer(&self.site);
                self.queue_again(Duration::ZERO, told, reply).await;
            }
            RecoveryTurn::Known(Err(failed)) => self.fail(failed, reply).await,
            RecoveryTurn::Doubt { failed, pause_min } => self.leave(failed, pause_min, reply).await,
        }
    }

    /// The request, telling the service which attempt it is.
    pub(crate) fn marked_request(&mut self, may_be_sent_again: bool) -> Request<Bytes> {
        let attempt = self.permit.attempt();
        let mut request = if may_be_sent_again {
            self.request.clone()
        } else {
            std::mem::replace(&mut self.request, Request::new(Bytes::new()))
        };
        headers::add_fence(request.headers_mut(), attempt.fence);
        request.extensions_mut().insert(attempt);
        request.extensions_mut().insert(self.permit.record().operation.clone());
        request
    }

    /// What the service is told: the words of the caller, or our own where nobody waits and it is
    /// repeated here.
    fn onward(&self, reply: &Reply) -> CallerSignals {
        match reply {
            None => CallerSignals::repeating(self.protection.timeout, self.protection.grpc_timeout),
            Some(_) => self.said,
        }
    }

    /// Runs it, and does not stop before it is known what happened, unless somebody further out
    /// repeats it. The client hears what is known when its time is over.
    async fn persist<Inner>(
        &mut self,
        inner: Inner,
        said: CallerSignals,
        before: EarlierAttempt,
        reply: &mut Reply,
    ) -> RecoveryTurn
    where
        Inner: HttpService,
    {
        let mut client = WaitingClient {
            reply: reply.take(),
            answer_by: Instant::now() + self.protection.timeout,
            id: self.permit.attempt().id,
            site: Arc::clone(&self.site),
        };
        let first = self.turn(inner.clone(), said, before);
        let turn = client.meanwhile(FailedAttempt::TimedOut, first).await;
        let turn = match turn.of_an_owner_before() {
            known @ RecoveryTurn::Known(_) => known,
            RecoveryTurn::Doubt { failed, pause_min } if self.is_left_to_the_next(before) => {
                RecoveryTurn::Doubt { failed, pause_min }
            }
            RecoveryTurn::Doubt { failed: unknown, pause_min } => {
                self.warn(unknown, "no answer; finding out what happened");
                let is_asked = self.permit.record().recovery == Recovery::Probe;
                if is_asked && before == EarlierAttempt::Unknown {
                    client.tell_if_later_than(unknown, self.quiet_at);
                }
                match self.find_out(inner, unknown, pause_min, &mut client).await {
                    RecoveryTurn::Doubt { failed, .. } if !self.is_left_to_the_sweeper() => {
                        RecoveryTurn::Known(Err(failed))
                    }
                    turn @ (RecoveryTurn::Known(_) | RecoveryTurn::Doubt { .. }) => turn,
                }
            }
        };
        *reply = client.reply;
        turn
    }

    /// Whether somebody further out repeats the request, and may find out. Who was told "no" too
    /// early does not leave: the next one would be told the same.
    fn is_left_to_the_next(&self, before: EarlierAttempt) -> bool {
        let may = match (self.permit.record().recovery, before) {
            (Recovery::Resend, _) | (_, EarlierAttempt::Nothing) => true,
            (Recovery::Probe | Recovery::Hold, EarlierAttempt::Unknown) => false,
        };
        may && self.said.retried_further_out
    }

    /// Whether what nobody knows yet is taken up again later: somebody was told that it will be done.
    fn is_left_to_the_sweeper(&self) -> bool {
        self.is_accepted && !self.permit.is_past_retention()
    }

    async fn answer(self, mut parts: response::Parts, body: Bytes, reply: Reply) {
        // A copy of its own: these bytes may be a slice of a buffer that is many times larger, and
        // a record in memory would keep all of it.
        let kept = StoredBody::Kept(Bytes::copy_from_slice(&body));
        let outcome = outcome(&parts, kept, &self.protection);
        let after = self.after(&parts);
        headers::strip_ours(&mut parts.headers);
        let body = match parts.extensions.get::<CallEnd>() {
            Some(end) => end.after(body),
            None => Body::from(body),
        };
        let first = Response::from_parts(parts, body);
        match after {
            AfterAnswer::Settle(meaning) => {
                let ended = AttemptEnd::Answered(AttemptAnswer { outcome, meaning });
                self.settle(ended, first, reply).await;
            }
            AfterAnswer::QueueAgain { pause } => self.queue_again(pause, first, reply).await,
        }
    }

    /// What follows from an answer, by its status and by what the client was told before.
    fn after(&self, parts: &response::Parts) -> AfterAnswer {
        let meaning = self.meaning(parts);
        if !self.is_accepted {
            return AfterAnswer::Settle(meaning);
        }
        let status = judged_status(parts).as_u16();
        match accepted(status, meaning) {
            Accepted::Ends(meaning) => AfterAnswer::Settle(meaning),
            Accepted::Again if self.permit.is_past_retention() => AfterAnswer::Settle(kept(status)),
            Accepted::Again => AfterAnswer::QueueAgain { pause: retry_after(parts) },
        }
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
        match pump(read, rest, &mut pipe, stall, self.permit.attempt().id).await {
            Ok((len, trailers)) => {
                let mut after = HeaderMap::new();
                if is_call(&outcome_parts.headers) {
                    let end = CallEnd::of(&outcome_parts.headers, trailers);
                    after = end.trailers().clone();
                    outcome_parts.extensions.insert(end);
                }
                let meaning = match self.after(&outcome_parts) {
                    AfterAnswer::Settle(meaning) => meaning,
                    AfterAnswer::QueueAgain { pause } => {
                        return self.queue_again(pause, Response::new(Body::empty()), None).await;
                    }
                };
                let body = StoredBody::NotKept { len };
                let outcome = outcome(&outcome_parts, body, &self.protection);
                let ended = AttemptEnd::Answered(AttemptAnswer { outcome, meaning });
                if let (Ok(_), Some(open)) = (self.permit.settle(ended).await, pipe) {
                    let _ = timeout(stall, open.send(PipedPiece::End(after))).await;
                }
            }
            Err(failed) => {
                let ended = self.end_without_answer(failed);
                self.warn(failed, "a response broke off half-way");
                let _ = self.permit.settle(ended).await;
            }
        }
    }

    async fn fail(self, failed: FailedAttempt, reply: Reply) {
        self.warn(failed, "a protected service gave no answer");
        let id = self.permit.attempt().id;
        let told = failed.problem(id).in_place_of_an_answer(&self.site);
        let ended = self.end_without_answer(failed);
        self.settle(ended, told, reply).await;
    }

    fn end_without_answer(&self, failed: FailedAttempt) -> AttemptEnd {
        failed.end(self.permit.attempt().id, &self.site, self.protection.results)
    }

    /// Puts what was accepted, and had no effect yet, back into the queue: longer each time, and at
    /// least for as long as the service asked for.
    async fn queue_again(self, asked_for: Duration, told: Response<Body>, reply: Reply) {
        let attempt = self.permit.attempt();
        let pause = pause_before_again(attempt.fence).max(asked_for.min(RETRY_AFTER_MAX));
        tracing::warn!(operation = %attempt.id, ?pause, "not done yet; it is tried again");
        let queued = self.permit.queue_again(pause).await;
        send(reply, settled(queued, &self.site, attempt.id, told));
    }

    /// Leaves an operation of unknown fate to whoever asks next, or to the sweeper if nobody does.
    async fn leave(self, failed: FailedAttempt, pause: Duration, reply: Reply) {
        let id = self.permit.attempt().id;
        self.warn(failed, "no answer; whoever repeats the request finds out what happened");
        let told = failed.left_to_the_next(id, pause).in_place_of_an_answer(&self.site);
        if self.permit.record().request().is_some() {
            let left = self.permit.leave(pause).await;
            send(reply, settled(left, &self.site, id, told));
        } else {
            // Without its request a sweeper would forget the attempt; a doubt stays until somebody
            // asks, who then takes over all the same.
            let ended = self.end_without_answer(failed);
            self.settle(ended, told, reply).await;
        }
    }

    /// Says which operation got no answer, to those who log no spans, too.
    fn warn(&self, failed: FailedAttempt, what: &str) {
        let operation = &self.permit.record().operation;
        tracing::warn!(
            operation = %operation.id(),
            route = &*self.protection.label,
            scope = operation.scope().as_str(),
            tenant = self.permit.pseudonym(),
            code = failed.code().code(),
            "{what}",
        );
    }

    /// Stores the end, and answers with `first` if that is what counts.
    async fn settle(self, ended: AttemptEnd, first: Response<Body>, reply: Reply) {
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
            tracing::error!(%error, operation = %id, "an outcome could not be recorded");
            let detail = "The request may have been carried out. Ask again with the same key.";
            Problem::new(Code::OutcomeNotRecorded, detail)
                .operation(id)
                .retry_after(Duration::from_secs(1))
                .in_place_of_an_answer(site)
        }
    }
}

/// How long an accepted operation waits for its next attempt: from a second to a minute. It takes two
/// fences each time, one to be run and one to be queued again.
fn pause_before_again(fence: Fence) -> Duration {
    let doublings = u32::try_from(fence.get() / 2).unwrap_or(u32::MAX).saturating_sub(1).min(6);
    let pause = Duration::from_secs(1 << doublings).min(Duration::from_secs(60));
    pause / 2 + pause.mul_f64(fastrand::f64() / 2.0)
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
    let mut kept = headers::stored(&parts.headers, protection);
    let status = match parts.extensions.get::<CallEnd>() {
        Some(end) => {
            let (status, trailers) = end.stored(protection);
            kept.extend(trailers);
            status
        }
        None => parts.status.as_u16(),
    };
    let len = match &body {
        StoredBody::Kept(bytes) => u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        StoredBody::NotKept { len } | StoredBody::Sealed { len, .. } => *len,
        _ => 0,
    };
    let body = match protection.kept_body {
        KeptBody::WithinLimit => body,
        // Nothing is what an empty body says: it can be said again.
        KeptBody::Never if len == 0 => body,
        KeptBody::Never => StoredBody::NotKept { len },
    };
    Outcome::new(status, kept, body)
        .or_else(|_| Outcome::new(status, Vec::new(), StoredBody::NotKept { len }))
        .unwrap_or_else(|_| Outcome::bare(status))
}
