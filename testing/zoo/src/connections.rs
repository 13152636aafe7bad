//! One connection: bytes to requests, and answers to bytes.

use std::{
    convert::Infallible,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::net::TcpStream;

use crate::{
    pipeline,
    response::PlainResponse,
    routes,
    running::SpeciesInstance,
    submission::{Submission, WholeRequest},
};

const BODY_BYTES_MAX: usize = 1024 * 1024;
const BUFFER_BYTES_MAX: usize = 64 * 1024;
const CHUNK_BYTES: usize = 16 * 1024;

pub(crate) async fn serve(stream: TcpStream, instance: Arc<SpeciesInstance>) {
    // Without it, what is sent in two pieces comes late.
    let _ = stream.set_nodelay(true);
    let connection = instance.number_connection();
    if instance.conduct.runs_pipelines_at_once() && !pipeline::is_http2(&stream).await {
        return pipeline::serve(stream, instance, connection).await;
    }
    let service = service_fn(|request| respond(request, instance.clone(), connection));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().max_buf_size(BUFFER_BYTES_MAX);
    // A connection that breaks is what a tester does: nobody is told.
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(
    request: Request<Incoming>,
    instance: Arc<SpeciesInstance>,
    connection: u64,
) -> Result<Response<TakenBody>, Infallible> {
    let is_detached = instance.conduct.is_detached();
    let handling = handle(request, instance, connection);
    let response = if is_detached { tokio::spawn(handling).await } else { Ok(handling.await) };
    let crashed = |_| TakenBody::plain(PlainResponse::problem(500, "the server failed"));
    Ok(response.unwrap_or_else(crashed))
}

async fn handle(
    request: Request<Incoming>,
    instance: Arc<SpeciesInstance>,
    connection: u64,
) -> Response<TakenBody> {
    let (head, body) = request.into_parts();
    let body = match read(body).await {
        Ok(body) => body,
        Err(cut) if instance.conduct.takes_cut_bodies() => cut,
        Err(_) => return TakenBody::plain(PlainResponse::problem(400, "the body ended early")),
    };
    let request = WholeRequest { head, body, connection, instance: instance.number };
    let (response, submission) = routes::respond(request, &instance).await;
    let watched = submission.map(|submission| (instance, submission));
    TakenBody::of(response, watched)
}

/// The whole body, or as much of it as came.
async fn read(mut body: Incoming) -> Result<Bytes, Bytes> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        match frame.map(Frame::into_data) {
            Ok(Ok(data)) if whole.len() + data.len() <= BODY_BYTES_MAX => whole.extend(data),
            Ok(Err(_trailers)) => {}
            Ok(Ok(_)) | Err(_) => return Err(whole.freeze()),
        }
    }
    Ok(whole.freeze())
}

/// A body that tells the conduct when it was not taken to its end.
#[derive(Debug)]
pub(crate) struct TakenBody {
    rest: Bytes,
    watched: Option<(Arc<SpeciesInstance>, Submission)>,
}

impl TakenBody {
    fn plain(response: PlainResponse) -> Response<Self> {
        Self::of(response, None)
    }

    fn of(
        response: PlainResponse,
        watched: Option<(Arc<SpeciesInstance>, Submission)>,
    ) -> Response<Self> {
        response.written(|rest| Self { rest, watched })
    }
}

impl Body for TakenBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = self.rest.len().min(CHUNK_BYTES);
        let chunk = self.rest.split_to(bytes);
        Poll::Ready((!chunk.is_empty()).then(|| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

impl Drop for TakenBody {
    fn drop(&mut self) {
        if let Some((instance, submission)) = mem::take(&mut self.watched)
            && !self.rest.is_empty()
        {
            instance.conduct.left_untaken(&instance.enclosure, &submission);
        }
    }
}
