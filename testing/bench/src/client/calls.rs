//! Calls without a journal.

use std::sync::Arc;

use bytes::Bytes;
use hapax::{
    client::{Client, Reqwest, RetryOptions},
    tower::{
        Body, IDEMPOTENCY_KEY,
        client::{Retry, RetryLayer},
    },
};
use http::{HeaderValue, Request, Response, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use tower_layer::Layer;
use tower_service::Service;

use super::{error::CallBenchError, upstream::BenchUpstream};
use crate::{
    BenchError,
    arms::{Arm, EffectCounter, StoredCount},
    request,
};

/// One way to call an upstream.
pub(super) struct Calls {
    caller: CallMaker,
    upstream: BenchUpstream,
    answer: Vec<u8>,
    effects: EffectCounter,
}

/// Who makes the calls.
#[derive(Clone)]
pub(super) enum CallMaker {
    Bare(reqwest::Client),
    Service(Reqwest),
    Layer(Retry<Reqwest>),
    Client(Client),
}

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl CallMaker {
    pub(super) fn bare() -> Result<Self, CallBenchError> {
        let builder = connections()?;
        // What `Reqwest` does without, too: both would cost a copy of each request.
        let builder = builder.redirect(reqwest::redirect::Policy::none());
        Ok(Self::Bare(builder.retry(reqwest::retry::never()).build()?))
    }

    pub(super) fn service() -> Result<Self, CallBenchError> {
        Ok(Self::Service(transport()?))
    }

    pub(super) fn layer() -> Result<Self, CallBenchError> {
        let layer = RetryLayer::new(RetryOptions::default())?;
        Ok(Self::Layer(layer.layer(transport()?)))
    }

    pub(super) fn client() -> Result<Self, CallBenchError> {
        Ok(Self::Client(Client::builder().build_on(transport()?)?))
    }

    /// Makes one call, as each is used by whoever wrote it, and reads the answer to its end.
    pub(super) async fn call(&self, url: &str, number: u64) -> Result<Bytes, CallBenchError> {
        let body = request::body(number);
        match self {
            Self::Bare(client) => {
                let call =
                    client.post(url).header(CONTENT_TYPE, JSON).header(IDEMPOTENCY_KEY, number);
                Ok(call.body(body).send().await?.bytes().await?)
            }
            Self::Service(service) => {
                let mut request = post(url, body)?;
                request.headers_mut().insert(IDEMPOTENCY_KEY, number.into());
                let answered = service.clone().call(request).await;
                whole(answered.map_err(CallBenchError::Service)?).await
            }
            Self::Layer(layer) => {
                let answered = layer.clone().call(post(url, body)?).await;
                whole(answered.map_err(|error| CallBenchError::Layer(Box::new(error)))?).await
            }
            Self::Client(client) => {
                let call = client.post(url).header(CONTENT_TYPE, JSON).body(body);
                let answer = call.send().await;
                let answer = answer.map_err(|error| CallBenchError::Call(Box::new(error)))?;
                Ok(answer.body().map_err(|_| CallBenchError::NotTheAnswer)?.clone())
            }
        }
    }
}

/// What every way has below it: nothing from the environment, and no certificates, since nothing is
/// encrypted.
pub(crate) fn connections() -> Result<reqwest::ClientBuilder, CallBenchError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls))
}

pub(super) fn transport() -> Result<Reqwest, CallBenchError> {
    Ok(Reqwest::from_builder(connections()?)?)
}

pub(super) fn post(url: &str, body: String) -> Result<Request<Body>, CallBenchError> {
    let request = Request::post(url).header(CONTENT_TYPE, JSON);
    Ok(request.body(Body::from(Bytes::from(body)))?)
}

async fn whole<B>(response: Response<B>) -> Result<Bytes, CallBenchError>
where
    B: http_body::Body<Data = Bytes, Error: Into<hapax::tower::BoxError>>,
{
    let collected = response.into_body().collect().await;
    Ok(collected.map_err(|error| CallBenchError::Service(error.into()))?.to_bytes())
}

impl Calls {
    pub(super) fn new(caller: CallMaker, upstream: BenchUpstream) -> Self {
        Self { caller, upstream, answer: request::answer(), effects: EffectCounter::default() }
    }
}

impl Arm for Calls {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        let answer = self.caller.call(self.upstream.url(), number).await?;
        if answer != self.answer {
            return Err(CallBenchError::NotTheAnswer.into());
        }
        self.effects.happened();
        Ok(())
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    async fn stored(&self) -> Result<StoredCount, BenchError> {
        self.upstream.executed().await
    }

    fn server(&self) -> Option<u32> {
        Some(self.upstream.pid())
    }
}
