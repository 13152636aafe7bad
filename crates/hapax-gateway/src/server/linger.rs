//! Closes a connection so that its last answer arrives.
//!
//! A socket that is closed while bytes of its client are unread is reset, and a reset takes along
//! what the client has not read: the refusal of a body that is too large, of all answers.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// Most bytes read for nothing while a connection is being closed.
const LINGER_BYTES_MAX: usize = 256 << 10;
/// Longest time a client is given to see that the connection is closed.
const LINGER_TIME_MAX: Duration = Duration::from_millis(500);

/// A connection that, once shut down, reads and forgets what its client still sends.
#[derive(Debug)]
pub(crate) struct Lingering<I> {
    io: I,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    bytes_left: usize,
    timer: Pin<Box<Sleep>>,
}

impl<I> Lingering<I> {
    pub(crate) fn new(io: I) -> Self {
        Self { io, closing: None }
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Says that nothing more is written, and waits for the client to do the same, within bounds.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.closing.is_none() {
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
        }
        let Self { io, closing } = &mut *self;
        let closing = closing.get_or_insert_with(|| Closing {
            bytes_left: LINGER_BYTES_MAX,
            timer: Box::pin(sleep(LINGER_TIME_MAX)),
        });
        let mut forgotten = [0; 4096];
        while closing.bytes_left > 0 && closing.timer.as_mut().poll(cx).is_pending() {
            let mut buf = ReadBuf::new(&mut forgotten);
            match ready!(Pin::new(&mut *io).poll_read(cx, &mut buf)) {
                Ok(()) if !buf.filled().is_empty() => {
                    closing.bytes_left = closing.bytes_left.saturating_sub(buf.filled().len());
                }
                // The client has closed too, or is gone.
                Ok(()) | Err(_) => break,
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Lingering<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_a_client_still_sends_is_read_until_it_closes_too() {
        let (ours, mut client) = duplex(64);
        let mut ours = Lingering::new(ours);
        let closing = tokio::spawn(async move { ours.shutdown().await });
        client.write_all(&[0; 1024]).await.unwrap();
        assert_eq!(client.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(!closing.is_finished());
        drop(client);
        closing.await.unwrap().unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_closes_is_not_waited_for() {
        let (ours, _client) = duplex(64);
        Lingering::new(ours).shutdown().await.unwrap();
    }
}
