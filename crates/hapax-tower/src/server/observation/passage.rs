//! A request passes as it is, and is looked at on the way: nothing waits for what is found out.

use std::{
    any::Any,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{AttemptAnswer, AttemptEnd, Outcome};
use http::{Request, Response, request::Parts};
use http_body::{Body as _, Frame, SizeHint};

use super::{
    foresight::{Foresight, SeenBody},
    observer::Observer,
    shadow::ShadowAttempt,
};
use crate::{
    body::{Body, BoxError},
    capped_body::Gathered,
    http_service::HttpService,
    nothing_sent::NothingSent,
    server::{
        execution::status_meaning::meaning,
        options::Protection,
        requests::{caller_signals::CallerSignals, front::Front, room::RequestRoom},
        service::pass,
    },
};

/// Hands a request to the service as [`pass`] does, and tells the observer what would have been done.
pub(crate) async fn pass_observed<Inner: HttpService>(
    front: &Front,
    inner: Inner,
    (protection, said): (Arc<Protection>, CallerSignals),
    (parts, body): (Parts, Body),
) -> Result<Response<Body>, Inner::Error> {
    let exchange = Arc::new(WatchedExchange::new(front.observer.clone()));
    let answer = PendingAnswer(Some(Arc::clone(&exchange)));
    let body = look_at(front, &protection, (&parts, body), exchange);
    let passed = pass(inner, said, Request::from_parts(parts, body)).await;
    match passed {
        Ok(response) => {
            let recovery = protection.policy.recovery();
            let (status, headers) = (response.status(), response.headers());
            let meaning = meaning(status, headers, protection.results, recovery);
            let outcome = Outcome::bare(status.as_u16());
            let end = AttemptEnd::Answered(AttemptAnswer { outcome, meaning });
            Ok(answer.follow(response, end))
        }
        Err(error) => {
            let nothing_sent = is_nothing_sent(&error);
            answer.end(if nothing_sent { AttemptEnd::NothingSent } else { AttemptEnd::Unanswered });
            Err(error)
        }
    }
}

fn is_nothing_sent(error: &(impl Any + Send)) -> bool {
    let error: &dyn Any = error;
    error.is::<NothingSent>()
        || error.downcast_ref::<BoxError>().is_some_and(|error| NothingSent::is_in(&**error))
}

/// The same body, which is looked at as it passes.
fn look_at(
    front: &Front,
    protection: &Arc<Protection>,
    (parts, body): (&Parts, Body),
    exchange: Arc<WatchedExchange>,
) -> Body {
    let foresight = Foresight::new(front, protection, parts);
    let Some(room) = RequestRoom::begin(front.room.as_ref(), None) else { return body };
    let bytes_max = protection.request_bytes_max;
    let look = BodyLook { foresight, exchange, gathered: Gathered::default(), room, bytes_max };
    let mut passing = ObservedBody { body, look: Some(look) };
    if passing.body.is_end_stream() {
        passing.is_over();
        return std::mem::replace(&mut passing.body, Body::empty());
    }
    Body::new(passing)
}

/// The body of a request that is passed on as it comes.
struct ObservedBody {
    body: Body,
    /// Until all of it was seen that is looked at.
    look: Option<BodyLook>,
}

/// What was seen of it so far. Pieces are kept until it is over, and held back for no time.
struct BodyLook {
    foresight: Foresight,
    exchange: Arc<WatchedExchange>,
    gathered: Gathered,
    room: RequestRoom,
    bytes_max: usize,
}

impl ObservedBody {
    fn see(&mut self, data: &Bytes) {
        let Some(look) = &mut self.look else { return };
        if look.gathered.len() + data.len() > look.bytes_max {
            self.judge(|_| SeenBody::Larger);
        } else if look.room.take(data.len()) {
            look.gathered.add(data.clone());
        } else {
            self.judge(|_| SeenBody::NoRoom);
        }
    }

    fn is_over(&mut self) {
        self.judge(|(gathered, room)| SeenBody::Whole(gathered.joined(), room));
    }

    /// Has it judged: at once, unless somebody else has to be asked or there is much to compare.
    fn judge(&mut self, seen: impl FnOnce((Gathered, RequestRoom)) -> SeenBody) {
        let Some(look) = self.look.take() else { return };
        let BodyLook { foresight, exchange, gathered, room, .. } = look;
        let body = seen((gathered, room));
        let mut judging = Box::pin(async move {
            if let Some(attempt) = foresight.tell(body).await {
                exchange.begin(attempt);
            }
        });
        let is_done = (&mut judging).now_or_never().is_some();
        if let (false, Ok(runtime)) = (is_done, tokio::runtime::Handle::try_current()) {
            runtime.spawn(judging);
        }
    }
}

impl http_body::Body for ObservedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.see(data);
                }
                // Who sends it on may never ask whether more comes.
                if self.body.is_end_stream() {
                    self.is_over();
                }
            }
            Poll::Ready(None) => self.is_over(),
            Poll::Ready(Some(Err(_))) => self.judge(|_| SeenBody::BrokenOff),
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ObservedBody {
    fn drop(&mut self) {
        self.judge(|_| SeenBody::BrokenOff);
    }
}

/// A request and its answer: whichever is known last is told together with the other.
struct WatchedExchange {
    observer: Observer,
    known: Mutex<KnownOfExchange>,
}

/// What is known of it.
enum KnownOfExchange {
    Nothing,
    Begun(ShadowAttempt),
    Ended(AttemptEnd),
}

impl WatchedExchange {
    fn new(observer: Observer) -> Self {
        Self { observer, known: Mutex::new(KnownOfExchange::Nothing) }
    }

    /// It would have been run.
    fn begin(&self, attempt: ShadowAttempt) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *known, KnownOfExchange::Nothing) {
            KnownOfExchange::Ended(end) => self.observer.settle(&attempt, end),
            KnownOfExchange::Nothing | KnownOfExchange::Begun(_) => {
                *known = KnownOfExchange::Begun(attempt);
            }
        }
    }

    /// This became of it.
    fn end(&self, end: AttemptEnd) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *known, KnownOfExchange::Nothing) {
            KnownOfExchange::Begun(attempt) => self.observer.settle(&attempt, end),
            KnownOfExchange::Nothing | KnownOfExchange::Ended(_) => {
                *known = KnownOfExchange::Ended(end);
            }
        }
    }
}

/// An answer that somebody waits for. Dropped before it came, nobody knows what it was.
struct PendingAnswer(Option<Arc<WatchedExchange>>);

impl PendingAnswer {
    fn end(mut self, end: AttemptEnd) {
        if let Some(exchange) = self.0.take() {
            exchange.end(end);
        }
    }

    /// The same answer, which has come when its body has. A client that does not read it changes nothing
    /// about what the service has said.
    fn follow(mut self, response: Response<Body>, end: AttemptEnd) -> Response<Body> {
        let Some(exchange) = self.0.take() else { return response };
        if response.body().is_end_stream() || response.body().is_whole() {
            exchange.end(end);
            return response;
        }
        response.map(|body| Body::new(WatchedAnswer { body, open: Some((exchange, end)) }))
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let Some(exchange) = self.0.take() {
            exchange.end(AttemptEnd::Unanswered);
        }
    }
}

/// The body of an answer that is passed on as it comes.
struct WatchedAnswer {
    body: Body,
    open: Option<(Arc<WatchedExchange>, AttemptEnd)>,
}

impl WatchedAnswer {
    fn close(&mut self) {
        if let Some((exchange, end)) = self.open.take() {
            exchange.end(end);
        }
    }

    fn break_off(&mut self) {
        if let Some((exchange, _)) = self.open.take() {
            exchange.end(AttemptEnd::Unanswered);
        }
    }
}

impl http_body::Body for WatchedAnswer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(None) => self.close(),
            Poll::Ready(Some(Ok(_))) if self.body.is_end_stream() => self.close(),
            Poll::Ready(Some(Err(_))) => self.break_off(),
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for WatchedAnswer {
    fn drop(&mut self) {
        self.close();
    }
}
