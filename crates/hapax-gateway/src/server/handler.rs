//! One request: is it meant for us, what does the layer say, how long did it take.

use std::{convert::Infallible, pin::Pin, sync::Arc};

use hapax_core::Store;
use hapax_tower::{Body, TransferCoding};
use http::{
    Method, Request, Response, Version,
    header::{HOST, ORIGIN},
};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{connection::Wiring, peer::Peer, refusal, watch::Watch};
use crate::proxy::Stalling;

/// Answers the requests of one connection.
pub(crate) struct Handler<S: Store> {
    pub(crate) wiring: Arc<Wiring<S>>,
    pub(crate) watch: Arc<Watch>,
    pub(crate) peer: Peer,
}

impl<S: Store> hyper::service::Service<Request<Incoming>> for Handler<S> {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let version = request.version();
        let in_flight = self.watch.request_began(version == Version::HTTP_2);
        let began = Instant::now();
        let serving = self.wiring.serving.load();
        let meter = Arc::clone(&serving.meter);
        if let Err(refused) = meant_for_us(&request, &serving.hosts) {
            meter.record_unhandled(began.elapsed());
            let mut response = refusal::answer(refused);
            if let Some(cors) = &serving.cors {
                cors.apply(request.headers().get(ORIGIN), response.headers_mut());
            }
            return Box::pin(async move { Ok(response) });
        }
        request.extensions_mut().insert(self.peer.clone());
        let cors = serving.cors.clone();
        let origin = cors.as_ref().and_then(|_| request.headers().get(ORIGIN).cloned());
        let stall = serving.body_timeout;
        let request = request.map(|body| Body::new(Stalling::new(body, stall)));
        let answering = serving.service.handle(request);
        let counted = meter.request();
        Box::pin(async move {
            let response = match answering.await {
                Ok((response, handled)) => {
                    meter.record(&handled, began.elapsed());
                    response
                }
                Err(error) => {
                    meter.record_unhandled(began.elapsed());
                    let mut response = refusal::upstream_failed(&*error, version);
                    if let Some(cors) = cors {
                        cors.apply(origin.as_ref(), response.headers_mut());
                    }
                    response
                }
            };
            drop((in_flight, counted));
            Ok(response)
        })
    }
}

/// Refuses what a gateway does not pass on, and what names another target than this one, or none.
fn meant_for_us<B>(request: &Request<B>, hosts: &[String]) -> Result<(), refusal::Refused> {
    match *request.method() {
        Method::CONNECT => return Err(refusal::Refused::Connect),
        Method::TRACE => return Err(refusal::Refused::Trace),
        _ => {}
    }
    match TransferCoding::of(request.headers()) {
        TransferCoding::Absent | TransferCoding::Chunked => {}
        TransferCoding::ChunkedTwice => return Err(refusal::Refused::ChunkedTwice),
        TransferCoding::Other => return Err(refusal::Refused::Coding),
    }
    let mut lines = request.headers().get_all(HOST).iter();
    let (named, further) = (lines.next(), lines.next());
    let target = request.uri().authority();
    let host = match (named, further, target) {
        (_, Some(_), _) => return Err(refusal::Refused::Host),
        (None, None, None) if request.version() > Version::HTTP_10 => {
            return Err(refusal::Refused::Host);
        }
        (Some(named), None, Some(target)) if *named != target.as_str() => {
            return Err(refusal::Refused::Host);
        }
        (Some(named), _, _) => named.to_str().map_err(|_| refusal::Refused::Host)?,
        (None, _, Some(target)) => target.as_str(),
        (None, _, None) => "",
    };
    // A name before the host is no part of it, and who reads it as one goes elsewhere.
    if host.contains('@') {
        return Err(refusal::Refused::Host);
    }
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|digit| digit.is_ascii_digit()) { name } else { host }
    });
    let known = hosts.is_empty() || hosts.iter().any(|known| known.eq_ignore_ascii_case(name));
    if known { Ok(()) } else { Err(refusal::Refused::Misdirected) }
}
