//! Work that goes on when nobody waits for it any more.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use tokio::runtime::Handle;

/// Polls `work` in place; if dropped before it is done, hands the rest to the runtime and its
/// result to `orphaned`.
///
/// A client that hangs up must neither stop a write half-way nor lose a claim it has just won.
pub(crate) struct Detached<F: Future + Send + 'static, G: FnOnce(F::Output) + Send + 'static> {
    rest: Option<(Pin<Box<F>>, G)>,
}

impl<F, G> Detached<F, G>
where
    F: Future + Send + 'static,
    G: FnOnce(F::Output) + Send + 'static,
{
    pub(crate) fn new(work: F, orphaned: G) -> Self {
        Self { rest: Some((Box::pin(work), orphaned)) }
    }
}

impl<F, G> Future for Detached<F, G>
where
    F: Future + Send + 'static,
    G: FnOnce(F::Output) + Send + Unpin + 'static,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // Not there while it is polled: work that has panicked is not gone on with.
        let Some((mut work, orphaned)) = self.rest.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.rest = Some((work, orphaned));
        }
        polled
    }
}

impl<F, G> Drop for Detached<F, G>
where
    F: Future + Send + 'static,
    G: FnOnce(F::Output) + Send + 'static,
{
    fn drop(&mut self) {
        if let (Some((work, orphaned)), Ok(runtime)) = (self.rest.take(), Handle::try_current()) {
            runtime.spawn(async move { orphaned(work.await) });
        }
    }
}
