//! How a client's requests leave: HTTP over the simulated network, which may deliver them twice.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_tower::{Body, BoxError, NothingSent};
use http::{HeaderValue, Request, Response, header::HOST};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::http1::{SendRequest, handshake},
};
use hyper_util::rt::TokioIo;
use tokio::time::sleep;
use tower_service::Service;
use turmoil::net::TcpStream;

use super::{plan::Variation, server, world::World};

/// One connection for each request.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) world: World,
}

/// How much later the second copy of a request may set out.
const DUPLICATE_AFTER_MAX: Duration = Duration::from_secs(8);

impl Service<Request<Body>> for Network {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let world = self.world.clone();
        Box::pin(async move {
            let request = made_ready(&world, request).await?;
            let mut connection = connect().await.map_err(NothingSent::new)?;
            if world.goes_wrong(world.plan().chances.duplicated) {
                world.count(|counts| counts.duplicates += 1);
                let (copy, after) = (request.clone(), world.up_to(DUPLICATE_AFTER_MAX));
                tokio::spawn(async move {
                    sleep(after).await;
                    // Nobody hears what becomes of it.
                    drop(connect().await?.send_request(copy).await);
                    Ok::<(), BoxError>(())
                });
            }
            Ok(connection.send_request(request).await?)
        })
    }
}

async fn connect() -> Result<SendRequest<Full<Bytes>>, BoxError> {
    let stream = TcpStream::connect((server::HOST, server::PORT)).await?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn made_ready(
    world: &World,
    request: Request<Body>,
) -> Result<Request<Full<Bytes>>, BoxError> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    parts.headers.insert(HOST, HeaderValue::from_static(server::HOST));
    parts.uri = parts.uri.path().parse()?;
    if world.plan().variation == Variation::KeyPerAttempt {
        parts.headers.insert("idempotency-key", world.draw_key().parse()?);
    }
    Ok(Request::from_parts(parts, Full::new(body)))
}
