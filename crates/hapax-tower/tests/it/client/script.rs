//! The other side: a destination with a script, which remembers what it was sent.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use hapax_tower::{
    Body, BoxError, NothingSent,
    client::{Retry, RetryError, RetryLayer, RetryOptions, Tried},
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt};

pub(super) type Answered = Result<Response<Body>, RetryError>;

/// What a destination does with one request.
pub(super) enum Reply {
    Said(Response<Body>),
    /// There is no connection to send it on.
    Unreachable,
    /// It arrives, and the connection breaks.
    Reset,
    /// It arrives, and nothing ever comes back.
    Silence,
}

/// What a destination was sent.
pub(super) struct Seen {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) at: Instant,
}

#[derive(Clone)]
pub(super) struct Destination {
    script: Arc<dyn Fn(usize) -> Reply + Send + Sync>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Destination {
    /// Answers the first request with `script(1)`, and so on.
    pub(super) fn new(script: impl Fn(usize) -> Reply + Send + Sync + 'static) -> Self {
        Self { script: Arc::new(script), seen: Arc::default() }
    }

    pub(super) fn client(&self, options: RetryOptions) -> Retry<Self> {
        RetryLayer::new(options).unwrap().layer(self.clone())
    }

    pub(super) async fn ask(&self, options: RetryOptions, request: Request<Body>) -> Answered {
        self.client(options).oneshot(request).await
    }

    /// How many requests arrived.
    pub(super) fn asked(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The same of every request that arrived.
    pub(super) fn each<T>(&self, of: impl FnMut(&Seen) -> T) -> Vec<T> {
        self.seen.lock().unwrap().iter().map(of).collect()
    }

    /// The values of one header, request by request.
    pub(super) fn header(&self, name: &str) -> Vec<Option<String>> {
        self.each(|seen| Some(seen.headers.get(name)?.to_str().unwrap().to_owned()))
    }

    /// The time between one request and the next.
    pub(super) fn pauses(&self) -> Vec<Duration> {
        let at = self.each(|seen| seen.at);
        at.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

impl Service<Request<Body>> for Destination {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await?.to_bytes();
            let nth = {
                let mut seen = this.seen.lock().unwrap();
                seen.push(Seen { headers: parts.headers, body, at: Instant::now() });
                seen.len()
            };
            match (this.script)(nth) {
                Reply::Said(response) => Ok(response),
                Reply::Unreachable => Err(NothingSent::new("connection refused").into()),
                Reply::Reset => Err("connection reset".into()),
                Reply::Silence => std::future::pending().await,
            }
        })
    }
}

pub(super) fn post() -> Request<Body> {
    Request::post("https://bank.test/charges").body(Body::from(Bytes::from("42 EUR"))).unwrap()
}

pub(super) fn get() -> Request<Body> {
    Request::get("https://bank.test/charges/1").body(Body::empty()).unwrap()
}

pub(super) fn said(status: u16) -> Reply {
    with(status, &[])
}

pub(super) fn with(status: u16, headers: &[(&'static str, &'static str)]) -> Reply {
    Reply::Said(response(status, headers, Body::from(Bytes::from(format!("said {status}")))))
}

/// One of our own refusals.
pub(super) fn problem(status: u16, code: &str, headers: &[(&'static str, &'static str)]) -> Reply {
    let document = format!(r#"{{"type": "https://bank.test/errors/{code}", "code": "{code}"}}"#);
    let mut response = response(status, headers, Body::from(Bytes::from(document)));
    let kind = HeaderValue::from_static("application/problem+json");
    response.headers_mut().insert("content-type", kind);
    Reply::Said(response)
}

/// An answer that breaks off in the middle of its body.
pub(super) fn cut(status: u16) -> Reply {
    let pieces = [Ok(Frame::data(Bytes::from("sa"))), Err(BoxError::from("connection reset"))];
    let body = Body::new(StreamBody::new(stream::iter(pieces)));
    Reply::Said(response(status, &[], body))
}

/// An answer of which a byte arrives every second, and never the last.
pub(super) fn drip(status: u16) -> Reply {
    let drops = stream::unfold((), async |()| {
        sleep(Duration::from_secs(1)).await;
        Some((Ok::<_, BoxError>(Frame::data(Bytes::from("."))), ()))
    });
    Reply::Said(response(status, &[], Body::new(StreamBody::new(drops))))
}

fn response(status: u16, headers: &[(&'static str, &'static str)], body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        let name = HeaderName::from_static(name);
        response.headers_mut().append(name, HeaderValue::from_static(value));
    }
    response
}

/// What is known about a call that was answered.
pub(super) fn tried(answered: &Answered) -> Tried {
    match answered {
        Ok(response) => response.extensions().get::<Tried>().unwrap().clone(),
        Err(error) => error.tried().unwrap().clone(),
    }
}

pub(super) fn status(answered: &Answered) -> u16 {
    answered.as_ref().unwrap().status().as_u16()
}

pub(super) async fn text(answered: Answered) -> String {
    let body = answered.unwrap().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}
