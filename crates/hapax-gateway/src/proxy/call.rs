//! Calls of gRPC, whose two halves last as long as their ends wish.

use hapax_tower::{AnswerBy, Body, is_call};
use http::{Request, Response, Version};
use tokio::time::timeout;

use super::{Inner, Overdue, Proxy, stall::Stalling};
use crate::client::SendError;

/// An extension of a call that may last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongLivedCall;

impl Proxy {
    /// Whether this is a call that may be silent for as long as the configuration says. The upstream
    /// speaks HTTP/2, where it takes no connection from anybody.
    pub(crate) fn lets_last<B>(&self, request: &Request<B>) -> bool {
        let inner = &*self.0;
        request.version() == Version::HTTP_2
            && is_call(request.headers())
            && inner.turns.may_last()
            && inner.client.speaks_http2()
    }
}

/// Sends a call as it comes. Nobody waits for its first message before it is sent: the upstream may
/// have to speak first.
pub(super) async fn pass(
    inner: &Inner,
    mut request: Request<Body>,
) -> Result<Response<Body>, SendError> {
    let turn = inner.turns.lasting()?;
    let within = match request.extensions_mut().get_mut::<AnswerBy>() {
        Some(by) => {
            *by = by.within(inner.silence_max);
            by.left()
        }
        None => inner.silence_max,
    };
    let answered = timeout(within, inner.client.send(request)).await;
    let response = answered.unwrap_or_else(|_| Err(SendError::Unanswered(Overdue.into())))?;
    if response.body().is_whole() {
        return Ok(response);
    }
    Ok(response.map(|body| Body::new(Stalling::new(body, inner.silence_max, turn))))
}
