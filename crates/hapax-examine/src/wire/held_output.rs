//! A connection whose output can be held back, and then leaves in one write.

use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
    time::{Instant, timeout},
};

use super::stream::WireStream;

/// The connection, for whoever writes to it.
#[derive(Debug)]
pub(super) struct HeldOutput {
    stream: WireStream,
    hold: OutputHold,
}

/// Holds the output of a connection back, and releases it.
#[derive(Debug, Clone, Default)]
pub(super) struct OutputHold(Arc<HoldInner>);

#[derive(Debug, Default)]
struct HoldInner {
    state: Mutex<HeldBytes>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct HeldBytes {
    is_held: bool,
    bytes: BytesMut,
    /// When all that was held had been written.
    left: Option<Instant>,
    writer: Option<Waker>,
}

impl HeldOutput {
    pub(super) fn new(stream: WireStream) -> (Self, OutputHold) {
        let hold = OutputHold::default();
        (Self { stream, hold: hold.clone() }, hold)
    }

    /// Writes what was held, once it is no longer; whether anything may be written now.
    fn poll_released(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut state = self.hold.state();
        state.writer = Some(context.waker().clone());
        if state.is_held {
            return Poll::Ready(Ok(false));
        }
        while !state.bytes.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(context, &state.bytes))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            state.bytes.advance(written);
            if state.bytes.is_empty() {
                state.left = Some(Instant::now());
                self.hold.0.changed.notify_waiters();
            }
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        Poll::Ready(Ok(true))
    }
}

impl OutputHold {
    /// From now on nothing leaves.
    pub(super) fn hold(&self) {
        let mut state = self.state();
        state.is_held = true;
        state.left = None;
    }

    /// Waits until so many bytes are held, at most for so long; whether they are.
    pub(super) async fn holds(&self, bytes: usize, patience: Duration) -> bool {
        self.until(patience, |state| state.bytes.len() >= bytes).await;
        self.state().bytes.len() >= bytes
    }

    /// Lets all of it go in one write, and says when it had left, if that was within this time.
    pub(super) async fn release(&self, patience: Duration) -> Option<Instant> {
        let writer = {
            let mut state = self.state();
            state.is_held = false;
            state.writer.take()
        };
        if let Some(writer) = writer {
            writer.wake();
        }
        self.until(patience, |state| state.left.is_some()).await;
        self.state().left
    }

    async fn until(&self, patience: Duration, is_so: impl Fn(&HeldBytes) -> bool) {
        let waiting = async {
            loop {
                let changed = self.0.changed.notified();
                if is_so(&self.state()) {
                    return;
                }
                changed.await;
            }
        };
        // Whoever waited sees by the state what came of it.
        let _ = timeout(patience, waiting).await;
    }

    fn state(&self) -> MutexGuard<'_, HeldBytes> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for HeldOutput {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // Whoever was woken by a release may only want to read.
        if let Poll::Ready(Err(error)) = this.poll_released(context) {
            return Poll::Ready(Err(error));
        }
        Pin::new(&mut this.stream).poll_read(context, into)
    }
}

impl AsyncWrite for HeldOutput {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if ready!(this.poll_released(context))? {
            return Pin::new(&mut this.stream).poll_write(context, bytes);
        }
        this.hold.state().bytes.extend_from_slice(bytes);
        this.hold.0.changed.notify_waiters();
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if ready!(this.poll_released(context))? {
            return Pin::new(&mut this.stream).poll_flush(context);
        }
        // What is held counts as gone, or its writer would wait.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
