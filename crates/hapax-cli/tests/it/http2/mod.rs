//! The same over HTTP/2: what clients may say, and what no client would.

mod abuse;
pub(crate) mod frames;
mod leaving;
mod requests;

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, request::Builder};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};

use crate::world::{Answer, PATIENCE};

/// One HTTP/2 connection.
pub(crate) struct Client(http2::SendRequest<Full<Bytes>>);

impl Client {
    /// A connection on which both sides know that it is HTTP/2.
    pub(crate) async fn open(to: SocketAddr) -> Self {
        Self::over(TcpStream::connect(to).await.unwrap()).await
    }

    pub(crate) async fn over<I>(io: I) -> Self
    where
        I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let shaking = http2::handshake(TokioExecutor::new(), TokioIo::new(io));
        let (sender, connection) = shaking.await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Sends a request; `None` if no complete answer came back.
    pub(crate) async fn ask(&mut self, builder: Builder, body: &str) -> Option<Answer> {
        let request: Request<_> = builder.body(Full::from(body.to_owned())).unwrap();
        let exchange = async {
            self.0.ready().await.ok()?;
            let (parts, body) = self.0.send_request(request).await.ok()?.into_parts();
            let headers = parts.headers.iter().map(|(name, value)| {
                (name.as_str().to_owned(), value.to_str().unwrap().to_owned())
            });
            let (status, headers) = (parts.status.as_u16(), headers.collect());
            let body = body.collect().await.ok()?.to_bytes().to_vec();
            Some(Answer { status, headers, body })
        };
        timeout(PATIENCE, exchange).await.ok().flatten()
    }
}

/// A POST by `alice`.
pub(crate) fn post(path: &str) -> Builder {
    Request::post(format!("http://gateway{path}")).header("authorization", "alice")
}
