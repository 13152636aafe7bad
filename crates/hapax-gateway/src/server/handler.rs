//! One request: is it meant for us, what does the layer say, how long did it take.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use hapax_tower::{Body, Share, TransferCoding, Verdict, in_words_of_calls, is_call};
use http::{
    Method, Request, Response, Version,
    header::{HOST, ORIGIN},
};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{
    connection::{Shares, Wiring},
    pace::Paced,
    peer::Peer,
    refusal,
    response_body::{AnswerRoom, ResponseBody},
    tunnel::{PendingUpgrade, TunnelSlot},
    watch::ConnectionWatch,
};

/// Answers the requests of one connection.
pub(crate) struct Handler {
    wiring: Arc<Wiring>,
    watch: Arc<ConnectionWatch>,
    peer: Peer,
    share: Share,
    answers: AnswerRoom,
    /// What the connection becomes, if it goes on in another protocol.
    tunnel: TunnelSlot,
}

impl Handler {
    pub(crate) fn new(
        wiring: Arc<Wiring>,
        watch: Arc<ConnectionWatch>,
        peer: Peer,
        tunnel: TunnelSlot,
    ) -> Self {
        let Shares { answers, bytes_max, under_way_max } = &wiring.shares;
        let share = Share::new(*bytes_max, *under_way_max);
        let answers = AnswerRoom::new(answers, *bytes_max);
        Self { wiring, watch, peer, share, answers, tunnel }
    }
}

impl hyper::service::Service<Request<Incoming>> for Handler {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let in_flight = self.watch.request_began(version == Version::HTTP_2);
        let began = Instant::now();
        let mut observed = self.wiring.telemetry.arrives(&mut request, &self.peer);
        let serving = self.wiring.serving.load();
        let (meter, answers) = (Arc::clone(&serving.meter), self.answers.clone());
        let welcome = if answers.is_full() {
            Err(refusal::RefusedRequest::AnswersNotTaken)
        } else {
            meant_for_us(&request, &serving.hosts)
        };
        if let Err(refused) = welcome {
            meter.record_unhandled(began.elapsed());
            let mut response = refusal::answer(refused);
            if is_call(request.headers()) {
                response = in_words_of_calls(response);
            }
            if let Some(cors) = &serving.cors {
                cors.apply(request.headers().get(ORIGIN), response.headers_mut());
            }
            let response = answers.send(response, Verdict::Passed, in_flight.answered(), observed);
            return Box::pin(async move { Ok(response) });
        }
        let upgrade = PendingUpgrade::of(&mut request).map(|asked| (asked, self.tunnel.clone()));
        request.extensions_mut().insert(self.peer.clone());
        if !request.method().is_safe() {
            request.extensions_mut().insert(self.share.clone());
        }
        let cors = serving.cors.clone();
        let origin = cors.as_ref().and_then(|_| request.headers().get(ORIGIN).cloned());
        let is_call = is_call(request.headers());
        let pace = serving.pace(&mut request);
        let request = request.map(|body| Body::new(Paced::new(body, pace)));
        let answering = serving.service.handle(request);
        let counted = meter.request();
        Box::pin(async move {
            let (mut response, verdict) = match answering.await {
                Ok((response, handled)) => {
                    meter.record(&handled, began.elapsed());
                    if let Some(observed) = &mut observed {
                        observed.handled(handled, meter.labels());
                    }
                    (response, handled.verdict)
                }
                Err(error) => {
                    meter.record_unhandled(began.elapsed());
                    let mut response = refusal::upstream_failed(&*error, version);
                    if is_call {
                        response = in_words_of_calls(response);
                    }
                    if let Some(cors) = cors {
                        cors.apply(origin.as_ref(), response.headers_mut());
                    }
                    (response, Verdict::Passed)
                }
            };
            if let Some((asked, slot)) = upgrade
                && let Some(tunnel) = asked.answered(&mut response, || meter.upgraded())
            {
                slot.put(tunnel);
            }
            drop(counted);
            Ok(answers.send(response, verdict, in_flight.answered(), observed))
        })
    }
}

/// Refuses what a gateway does not pass on, and what names another target than this one, or none.
fn meant_for_us<B>(request: &Request<B>, hosts: &[String]) -> Result<(), refusal::RefusedRequest> {
    match *request.method() {
        Method::CONNECT => return Err(refusal::RefusedRequest::Connect),
        Method::TRACE => return Err(refusal::RefusedRequest::Trace),
        _ => {}
    }
    match TransferCoding::of(request.headers()) {
        TransferCoding::Absent | TransferCoding::Chunked => {}
        TransferCoding::ChunkedTwice => return Err(refusal::RefusedRequest::ChunkedTwice),
        TransferCoding::Other => return Err(refusal::RefusedRequest::Coding),
    }
    let mut lines = request.headers().get_all(HOST).iter();
    let (named, further) = (lines.next(), lines.next());
    let target = request.uri().authority();
    let host = match (named, further, target) {
        (_, Some(_), _) => return Err(refusal::RefusedRequest::Host),
        (None, None, None) if request.version() > Version::HTTP_10 => {
            return Err(refusal::RefusedRequest::Host);
        }
        (Some(named), None, Some(target)) if *named != target.as_str() => {
            return Err(refusal::RefusedRequest::Host);
        }
        (Some(named), _, _) => named.to_str().map_err(|_| refusal::RefusedRequest::Host)?,
        (None, _, Some(target)) => target.as_str(),
        (None, _, None) => "",
    };
    // A name before the host is no part of it, and who reads it as one goes elsewhere.
    if host.contains('@') {
        return Err(refusal::RefusedRequest::Host);
    }
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let known = hosts.is_empty() || hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
    if known { Ok(()) } else { Err(refusal::RefusedRequest::Misdirected) }
}
