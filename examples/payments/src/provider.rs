//! The provider, over HTTP. It can fail in every way a network can.

use std::{fmt, time::Duration};

use axum::http::{Request, StatusCode, header::CONTENT_TYPE};
use bytes::Bytes;
use hapax::{Key, Probed};
use hapax_core::{Faults, Injected};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::timeout;

use crate::{order::Order, settings::Settings};

/// What the provider said, as it is kept. A "no" is a result like another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Charged {
    /// The money was taken; this is its own name for that.
    Taken { charge: String },
    /// It will not take the money.
    Declined,
}

/// Why it is not known whether it charged. The next attempt asks.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProviderError {
    #[error("the provider cannot be asked")]
    Ask(#[source] axum::http::Error),
    #[error("the provider did not answer within {limit:?}")]
    Silent { limit: Duration },
    #[error("the provider could not be reached")]
    Unreachable(#[from] hyper_util::client::legacy::Error),
    #[error("the provider's answer was cut off")]
    CutOff(#[from] hyper::Error),
    #[error("the provider answered {status}")]
    Status { status: StatusCode },
    #[error("the provider's answer makes no sense")]
    Nonsense(#[from] serde_json::Error),
    #[error(transparent)]
    Injected(#[from] Injected),
}

pub(crate) struct Provider {
    charges: String,
    limit: Duration,
    client: Client<HttpConnector, Full<Bytes>>,
    faults: Faults,
}

/// The part of its answer that matters here.
#[derive(Deserialize)]
struct Charge {
    id: String,
}

impl Provider {
    pub(crate) fn new(settings: &Settings, faults: Faults) -> Self {
        Self {
            charges: format!("{}/charges", settings.provider.trim_end_matches('/')),
            limit: Duration::from_millis(settings.provider_timeout_ms),
            client: Client::builder(TokioExecutor::new()).build_http(),
            faults,
        }
    }

    /// Takes the money, once per key.
    pub(crate) async fn charge(&self, key: Key, order: &Order) -> Result<Charged, ProviderError> {
        let body = json!({ "order": order.order, "cents": order.cents }).to_string();
        let request = Request::post(&self.charges)
            .header("idempotency-key", key.as_str())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .map_err(ProviderError::Ask)?;
        self.faults.at("charge.asking")?;
        let (status, body) = self.send(request).await?;
        self.faults.at("charge.answered")?;
        match status {
            StatusCode::OK => taken(&body),
            StatusCode::PAYMENT_REQUIRED => Ok(Charged::Declined),
            status => Err(ProviderError::Status { status }),
        }
    }

    /// Whether it took the money under this key.
    pub(crate) async fn find(&self, key: Key) -> Probed<Charged> {
        let request = Request::get(format!("{}/{}", self.charges, key.as_str()));
        let found = match request.body(Full::default()) {
            Ok(request) => self.send(request).await,
            Err(error) => Err(ProviderError::Ask(error)),
        };
        match found {
            Ok((StatusCode::OK, body)) => taken(&body).map_or(Probed::Unknown, Probed::Happened),
            // It may still come to it, if an earlier attempt is on its way: under the same key.
            Ok((StatusCode::NOT_FOUND, _)) => Probed::DidNot,
            Ok(_) | Err(_) => Probed::Unknown,
        }
    }

    async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), ProviderError> {
        let exchange = async {
            let response = self.client.request(request).await?;
            let status = response.status();
            Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        let limit = self.limit;
        timeout(limit, exchange).await.map_err(|_| ProviderError::Silent { limit })?
    }
}

fn taken(body: &[u8]) -> Result<Charged, ProviderError> {
    let Charge { id } = serde_json::from_slice(body)?;
    Ok(Charged::Taken { charge: id })
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").field("charges", &self.charges).finish_non_exhaustive()
    }
}
