//! A running gateway's admin API, asked over HTTP.

use bytes::Bytes;
use hapax::{
    OperationId,
    operator::{Change, Order},
    store::{Filter, Page},
};
use hapax_gateway::admin::documents::{
    ChangedDocument, ExplanationDocument, ForeseenDocument, ListingDocument, ObservationsDocument,
    ReleaseDocument, Resolve, ShownDocument,
};
use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::net::TcpStream;

use super::error::KeysError;

/// The largest answer that is read, in bytes: a page of the largest names, or one stored body.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The admin API at an address.
pub(crate) struct Admin {
    authority: String,
    token: String,
}

/// Why the admin API did not answer as asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdminError {
    #[error("--admin is no address of an admin listener; write http://HOST:PORT")]
    Address,
    #[error("the admin listener asks for a token; give --token, or set HAPAX_ADMIN_TOKEN")]
    NoToken,
    #[error("the admin listener at {authority} does not answer; is it up, and is --admin right?")]
    Unreachable {
        authority: String,
        #[source]
        source: std::io::Error,
    },
    #[error("the exchange with the admin listener was cut off")]
    CutOff(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("what the admin listener answered is not from its API ({status})")]
    Foreign { status: StatusCode },
    #[error("{detail}")]
    Refused { status: StatusCode, code: String, detail: String },
}

impl AdminError {
    /// As `hapax keys --help` lists them.
    pub(super) fn exit_code(&self) -> u8 {
        match self {
            Self::Refused { code, .. } if code == "unknown" => 3,
            Self::Refused { code, .. } if code == "unconfirmed" => 5,
            Self::Refused { status, .. } if *status == StatusCode::CONFLICT => 4,
            // A change may have been made before the answer was lost.
            Self::CutOff(_) => 5,
            Self::Address
            | Self::NoToken
            | Self::Unreachable { .. }
            | Self::Foreign { .. }
            | Self::Refused { .. } => 1,
        }
    }
}

/// A refusal as the API writes it.
#[derive(Debug, Deserialize)]
struct ApiProblem {
    code: String,
    detail: String,
}

impl Admin {
    pub(crate) fn new(url: &str, token: Option<&str>) -> Result<Self, AdminError> {
        let uri: Uri = url.parse().map_err(|_| AdminError::Address)?;
        let is_root = matches!(uri.path(), "" | "/") && uri.query().is_none();
        if uri.scheme_str() != Some("http") || !is_root {
            return Err(AdminError::Address);
        }
        let authority = uri.authority().ok_or(AdminError::Address)?;
        let port = authority.port_u16().unwrap_or(80);
        let authority = format!("{}:{port}", authority.host());
        let token = token.ok_or(AdminError::NoToken)?.to_owned();
        Ok(Self { authority, token })
    }

    /// What would have been done with requests of routes that are watched alone.
    pub(crate) async fn observations(&self) -> Result<ObservationsDocument, AdminError> {
        self.ask(Method::GET, "/v1/observations", Bytes::new()).await
    }

    pub(super) async fn list(
        &self,
        filter: &Filter,
        page: Page,
    ) -> Result<ListingDocument, KeysError> {
        let mut path = format!("/v1/operations?limit={}", page.limit);
        let after = page.after.map(|id| id.to_string());
        for (name, value) in [
            ("after", after.as_deref()),
            ("tenant", filter.tenant.as_ref().map(|tenant| tenant.as_str())),
            ("scope", filter.scope.as_ref().map(|scope| scope.as_str())),
            ("state", filter.state.map(|state| state.as_str())),
        ] {
            if let Some(value) = value {
                let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
                path.push_str(&format!("&{name}={value}"));
            }
        }
        Ok(self.ask(Method::GET, &path, Bytes::new()).await?)
    }

    pub(super) async fn show(
        &self,
        id: OperationId,
        with_body: bool,
    ) -> Result<Option<ShownDocument>, KeysError> {
        let path = format!("/v1/operations/{id}?body={with_body}");
        match self.ask(Method::GET, &path, Bytes::new()).await {
            Err(AdminError::Refused { code, .. }) if code == "unknown" => Ok(None),
            answer => Ok(Some(answer?)),
        }
    }

    pub(super) async fn explain(&self, id: OperationId) -> Result<ExplanationDocument, KeysError> {
        let path = format!("/v1/operations/{id}/explanation");
        Ok(self.ask(Method::GET, &path, Bytes::new()).await?)
    }

    /// What the change would do; nothing is changed.
    pub(super) async fn foresee(
        &self,
        order: &Order,
        change: &Change,
    ) -> Result<ForeseenDocument, KeysError> {
        Ok(self.order(order, change, true).await?)
    }

    pub(super) async fn change(
        &self,
        order: &Order,
        change: &Change,
    ) -> Result<ChangedDocument, KeysError> {
        Ok(self.order(order, change, false).await?)
    }

    async fn order<T: DeserializeOwned>(
        &self,
        order: &Order,
        change: &Change,
        dry_run: bool,
    ) -> Result<T, AdminError> {
        let (deed, body) = match change {
            Change::Release => {
                ("release", serde_json::to_vec(&ReleaseDocument::of(order, dry_run)))
            }
            Change::Resolve(resolution) => {
                ("resolve", serde_json::to_vec(&Resolve::of(order, resolution, dry_run)))
            }
        };
        let body = body.map_err(|error| AdminError::CutOff(error.into()))?;
        let path = format!("/v1/operations/{}/{deed}", order.id);
        self.ask(Method::POST, &path, body.into()).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, AdminError> {
        let (status, answer) = self.exchange(method, path, body).await?;
        if status.is_success() {
            return serde_json::from_slice(&answer).map_err(|_| AdminError::Foreign { status });
        }
        let problem = serde_json::from_slice(&answer);
        let ApiProblem { code, detail } = problem.map_err(|_| AdminError::Foreign { status })?;
        Err(AdminError::Refused { status, code, detail })
    }

    /// One request on a connection of its own. It waits as long as the gateway does: whoever grows
    /// impatient can interrupt it.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), AdminError> {
        let cut_off = |error: hyper::Error| AdminError::CutOff(error.into());
        let unreachable =
            |source| AdminError::Unreachable { authority: self.authority.clone(), source };
        let stream = TcpStream::connect(&self.authority).await.map_err(unreachable)?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(cut_off)?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, format!("Bearer {}", self.token))
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| AdminError::CutOff(error.into()))?;
        let response = sender.send_request(request).await.map_err(cut_off)?;
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
        Ok((status, answer.map_err(AdminError::CutOff)?.to_bytes()))
    }
}
