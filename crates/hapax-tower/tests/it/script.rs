//! A service that plays a script behind the layer: first this, then that.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Body, BoxError, IdempotencyLayer, Later, NothingSent, Protection, Routes, Site, Tenancy,
    Treatment,
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use tower::{Layer, ServiceExt, service_fn};

use crate::world::{Answer, Wire, keyed};

/// What the service does with one request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Act {
    /// Answers with this status.
    Says(u16),
    /// Answers so, and asks to be left alone for these seconds.
    SaysWait(u16, u64),
    /// Breaks the connection.
    Breaks,
    /// Cannot even be reached.
    CannotBeReached,
    /// Never answers.
    Hangs,
    Panics,
    /// Refuses with this status and code, as another layer further in does.
    Refuses(u16, &'static str),
    /// Answers with a problem of its own whose page happens to be called like one of ours.
    Resembles(u16, &'static str),
}

/// One process with a scripted service. Clones are the same process.
#[derive(Clone)]
pub(crate) struct Process {
    script: Script,
    layer: IdempotencyLayer,
}

/// What the service does, and what it got.
#[derive(Clone)]
struct Script {
    acts: Arc<Mutex<VecDeque<Act>>>,
    /// The fence of each request the service got, and whether it had a credential.
    got: Arc<Mutex<Vec<(String, bool)>>>,
    /// The head of each request the service got.
    heads: Arc<Mutex<Vec<HeaderMap>>>,
}

impl Process {
    pub(crate) fn start(store: &Wire, protection: Protection, script: &[Act]) -> Self {
        let routes = Routes::new(Treatment::Protect(protection)).unwrap();
        let later = Later::new(routes, Site::default());
        let options = Options { finisher: Some(later.finisher()), ..Options::default() };
        let engine = Engine::start(store.clone(), options);
        let layer = IdempotencyLayer::with_later(engine, Tenancy::credential(), &later);
        let process = Self::around(layer, script);
        let script = process.script.clone();
        later.serve(service_fn(move |request| script.clone().play(request)));
        process
    }

    /// One that keeps no requests to finish them by itself.
    pub(crate) fn start_without_later(
        store: &Wire,
        protection: Protection,
        script: &[Act],
    ) -> Self {
        let routes = Routes::new(Treatment::Protect(protection)).unwrap();
        let engine = Engine::start(store.clone(), Options::default());
        let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
        Self::around(layer, script)
    }

    fn around(layer: IdempotencyLayer, script: &[Act]) -> Self {
        let acts = Arc::new(Mutex::new(script.iter().copied().collect()));
        let script = Script { acts, got: Arc::default(), heads: Arc::default() };
        Self { script, layer }
    }

    pub(crate) async fn send(&self, prefer: &str) -> Answer {
        self.send_with(&[("prefer", prefer)]).await
    }

    /// Sends the usual request with these headers.
    pub(crate) async fn send_with(&self, headers: &[(&str, &str)]) -> Answer {
        let script = self.script.clone();
        let service = self.layer.layer(service_fn(move |request| script.clone().play(request)));
        let request =
            headers.iter().fold(keyed("/pay"), |head, (name, value)| head.header(*name, *value));
        let request = request.body(Full::from("100")).unwrap();
        let response = service.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// The fence of each request the service got, and whether it had a credential.
    pub(crate) fn got(&self) -> Vec<(String, bool)> {
        self.script.got.lock().unwrap().clone()
    }

    pub(crate) fn fences(&self) -> Vec<String> {
        self.got().iter().map(|(fence, _)| fence.clone()).collect()
    }

    /// What the service was told under this name, request by request.
    pub(crate) fn told(&self, name: &str) -> Vec<Option<String>> {
        let heads = self.script.heads.lock().unwrap();
        let said =
            heads.iter().map(|head| head.get(name).map(|said| said.to_str().unwrap().into()));
        said.collect()
    }

    /// Waits until the service was asked so often.
    pub(crate) async fn asked(&self, times: usize) {
        while self.got().len() < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Script {
    async fn play(self, request: Request<Body>) -> Result<Response<Full<Bytes>>, BoxError> {
        let (parts, body) = request.into_parts();
        let act = self.acts.lock().unwrap().pop_front().unwrap_or(Act::Says(201));
        if matches!(act, Act::CannotBeReached) {
            return Err(NothingSent::new("connection refused").into());
        }
        assert_eq!(body.collect().await.unwrap().to_bytes(), "100");
        assert_eq!(
            parts.headers["idempotency-key"], "\"k-1\"",
            "one spelling, however it was sent"
        );
        let fence = parts.headers["hapax-fence"].to_str().unwrap().to_owned();
        self.heads.lock().unwrap().push(parts.headers.clone());
        let number = {
            let mut got = self.got.lock().unwrap();
            got.push((fence, parts.headers.contains_key("authorization")));
            got.len()
        };
        let mut response = Response::new(Full::from(format!("answer {number}")));
        match act {
            Act::Says(status) => *response.status_mut() = status.try_into().unwrap(),
            Act::SaysWait(status, seconds) => {
                *response.status_mut() = status.try_into().unwrap();
                response.headers_mut().insert("retry-after", seconds.into());
            }
            Act::Breaks => return Err("the connection broke".into()),
            Act::Hangs => std::future::pending().await,
            Act::Panics => panic!("the service gave up"),
            Act::Refuses(status, code) | Act::Resembles(status, code) => {
                *response.status_mut() = status.try_into().unwrap();
                let link = format!("</.well-known/idempotency/errors/{code}>; rel=\"describedby\"");
                let kind = HeaderValue::from_static("application/problem+json");
                response.headers_mut().insert("content-type", kind);
                response.headers_mut().insert("link", link.try_into().unwrap());
                if let Act::Refuses(..) = act {
                    let code = HeaderValue::from_static(code);
                    response.headers_mut().insert("hapax-refusal", code);
                }
            }
            Act::CannotBeReached => unreachable!(),
        }
        Ok(response)
    }
}
