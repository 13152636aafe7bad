//! A client for one origin that knows whether anything of a request has left.
//!
//! Connections are kept and used again. A client belongs to no thread, but its connections are
//! driven by the runtime they were made on: give each worker its own.

mod borrowed_connection;
mod breaking;
mod chunks;
mod connect;
mod error;
mod exclusive_connection;
mod framing;
mod head;
mod idle;
mod pool;
mod transcript;
mod unwritten_request;
mod upgrade_offer;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_tower::{Body, leaves_its_folder};
use http::{HeaderValue, Request, Response, Uri, header::HOST, uri::PathAndQuery};
use http_body_util::{BodyExt, Limited};

use self::{connect::Connector, pool::Pool};
pub(crate) use self::{
    error::OutsidePrefix,
    pool::OfferAnswer,
    upgrade_offer::{SwitchedConnection, UpgradeOffer},
};
pub use self::{
    error::{RequestBroken, SendError, UpstreamClientError},
    transcript::{Transcript, read_answer},
};
use crate::config::Upstream;

/// Sends requests to one origin. Clones share their connections.
#[derive(Debug, Clone)]
pub struct UpstreamClient(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    pool: Pool,
    authority: HeaderValue,
    /// Put before every path; empty for most.
    prefix: String,
}

impl UpstreamClient {
    /// A client for the origin this upstream names, with connections of its own.
    pub fn new(upstream: &Upstream) -> Result<Self, UpstreamClientError> {
        let connector = Connector::new(upstream)?;
        let authority = upstream.url.authority().ok_or(UpstreamClientError::NoAuthority)?;
        let authority = HeaderValue::try_from(authority.as_str());
        Ok(Self(Arc::new(Inner {
            authority: authority.map_err(|_| UpstreamClientError::NoAuthority)?,
            prefix: upstream.url.path().trim_end_matches('/').to_owned(),
            pool: Pool::new(connector, upstream),
        })))
    }

    /// The origin, as a `Host` header names it.
    pub fn authority(&self) -> &HeaderValue {
        &self.0.authority
    }

    /// Sends a request whose target is a path of this origin, and waits for the head of the answer.
    ///
    /// The request's own scheme and authority are ignored: they come from the client. The host it is
    /// for is the one in its `Host` header, whichever protocol is spoken.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Body>, SendError> {
        self.place(&mut request)?;
        self.0.pool.send(request).await
    }

    /// Whether the last new connection to the upstream spoke HTTP/2.
    pub(crate) fn speaks_http2(&self) -> bool {
        self.0.pool.speaks_http2()
    }

    /// Whether the upstream can go on in another protocol.
    pub(crate) fn may_switch(&self) -> bool {
        self.0.pool.may_switch()
    }

    /// Sends a request by the same rules, which offers to go on in another protocol.
    pub(crate) async fn send_offering(
        &self,
        mut request: Request<Body>,
        offer: &UpgradeOffer,
    ) -> Result<OfferAnswer, SendError> {
        self.place(&mut request)?;
        self.0.pool.send_offering(request, offer).await
    }

    /// Puts the target below the prefix.
    fn place(&self, request: &mut Request<Body>) -> Result<(), SendError> {
        let prefix = &self.0.prefix;
        let target = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
        let is_whole = target.starts_with('/') || target == "*";
        if !prefix.is_empty() || !is_whole {
            *request.uri_mut() = placed(prefix, request.uri())?;
        }
        Ok(())
    }

    /// Sends a small request and reads its whole answer, up to `cap` bytes and `within` this time.
    pub async fn fetch(
        &self,
        request: Request<Bytes>,
        cap: usize,
        within: Duration,
    ) -> Result<Response<Bytes>, SendError> {
        let mut request = request.map(Body::from);
        request.headers_mut().entry(HOST).or_insert_with(|| self.0.authority.clone());
        let exchange = async {
            let (parts, body) = self.send(request).await?.into_parts();
            let body = Limited::new(body, cap).collect().await.map_err(SendError::Unanswered)?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        let overdue = || SendError::Unanswered("no complete answer in time".into());
        tokio::time::timeout(within, exchange).await.unwrap_or_else(|_| Err(overdue()))
    }
}

/// The target below the prefix, which it must not leave.
fn placed(prefix: &str, target: &Uri) -> Result<Uri, SendError> {
    let path = target.path();
    if !prefix.is_empty() && leaves_its_folder(path) {
        return Err(SendError::NothingSent(OutsidePrefix.into()));
    }
    let placed = match target.query() {
        Some(query) => format!("{prefix}{path}?{query}"),
        None => format!("{prefix}{path}"),
    };
    Uri::try_from(placed).map_err(|error| SendError::NothingSent(error.into()))
}
