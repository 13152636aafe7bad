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
use http::{Request, Response};
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
}

/// One process with a scripted service. Clones are the same process.
#[derive(Clone)]
pub(crate) struct Process {
    script: Arc<Mutex<VecDeque<Act>>>,
    /// The fence of each request the service got, and whether it had a credential.
    pub(crate) got: Arc<Mutex<Vec<(String, bool)>>>,
    layer: IdempotencyLayer<Wire>,
}

impl Process {
    pub(crate) fn start(store: &Wire, protection: Protection, script: &[Act]) -> Self {
        let routes = Routes::new(Treatment::Protect(protection)).unwrap();
        let later = Later::new(routes, Site::default());
        let options = Options { finisher: Some(later.finisher()), ..Options::default() };
        let engine = Engine::start(store.clone(), options);
        let layer = IdempotencyLayer::with_later(engine, Tenancy::credential(), &later);
        let script = Arc::new(Mutex::new(script.iter().copied().collect()));
        let process = Self { script, got: Arc::default(), layer };
        let (script, got) = (Arc::clone(&process.script), Arc::clone(&process.got));
        later.serve(service_fn(move |request| play(script.clone(), got.clone(), request)));
        process
    }

    pub(crate) async fn send(&self, prefer: &str) -> Answer {
        let (script, got) = (Arc::clone(&self.script), Arc::clone(&self.got));
        let service =
            self.layer.layer(service_fn(move |request| play(script.clone(), got.clone(), request)));
        let request = keyed("/pay").header("prefer", prefer).body(Full::from("100")).unwrap();
        let response = service.oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    pub(crate) fn fences(&self) -> Vec<String> {
        self.got.lock().unwrap().iter().map(|(fence, _)| fence.clone()).collect()
    }

    /// Waits until the service was asked so often.
    pub(crate) async fn asked(&self, times: usize) {
        while self.got.lock().unwrap().len() < times {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn play(
    script: Arc<Mutex<VecDeque<Act>>>,
    got: Arc<Mutex<Vec<(String, bool)>>>,
    request: Request<Body>,
) -> Result<Response<Full<Bytes>>, BoxError> {
    let (parts, body) = request.into_parts();
    let act = script.lock().unwrap().pop_front().unwrap_or(Act::Says(201));
    if matches!(act, Act::CannotBeReached) {
        return Err(NothingSent::new("connection refused").into());
    }
    assert_eq!(body.collect().await.unwrap().to_bytes(), "100");
    assert_eq!(parts.headers["idempotency-key"], "k-1");
    let fence = parts.headers["hapax-fence"].to_str().unwrap().to_owned();
    let number = {
        let mut got = got.lock().unwrap();
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
        Act::CannotBeReached => unreachable!(),
    }
    Ok(response)
}
