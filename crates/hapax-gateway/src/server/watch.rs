//! What a connection is doing, and how long it may go on doing it.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::Instant,
};

/// Watches one connection. All times are milliseconds since it was made, plus one; zero is never.
#[derive(Debug)]
pub(crate) struct Watch {
    made_at: Instant,
    bounds: Bounds,
    /// Requests that were called and not yet answered.
    in_flight: AtomicU32,
    last_byte: AtomicU64,
    last_written: AtomicU64,
    /// When the head of a request began that is not complete.
    head_since: AtomicU64,
    is_http2: AtomicBool,
}

/// How long what may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
}

/// What is to be done with a connection now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Look again after this time.
    Good { look_again: Duration },
    /// It is unused, or a head takes too long: close it.
    Overdue,
}

impl Watch {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            made_at: Instant::now(),
            bounds,
            in_flight: AtomicU32::new(0),
            last_byte: AtomicU64::new(0),
            last_written: AtomicU64::new(0),
            head_since: AtomicU64::new(0),
            is_http2: AtomicBool::new(false),
        })
    }

    /// A request's head is complete.
    pub(crate) fn request_began(self: &Arc<Self>, is_http2: bool) -> InFlight {
        self.in_flight.fetch_add(1, Relaxed);
        self.head_since.store(0, Relaxed);
        if is_http2 {
            self.is_http2.store(true, Relaxed);
        }
        InFlight(Arc::clone(self))
    }

    pub(crate) fn standing(&self) -> Standing {
        let now = self.now();
        let idle_for = now - self.last_byte.load(Relaxed).min(now);
        let idle_for = Duration::from_millis(idle_for);
        if self.in_flight.load(Relaxed) > 0 {
            // Whoever works on the request has deadlines of its own.
            return Standing::Good { look_again: self.bounds.head };
        }
        let head_since = self.head_since.load(Relaxed);
        if head_since > 0 {
            // A request that was sent before its turn waits for the answer that is being written.
            let turn_since = head_since.max(self.last_written.load(Relaxed));
            let head_for = Duration::from_millis(now - turn_since.min(now));
            if head_for >= self.bounds.head {
                return Standing::Overdue;
            }
        }
        if idle_for >= self.bounds.idle {
            return Standing::Overdue;
        }
        Standing::Good { look_again: self.bounds.head.min(self.bounds.idle) }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.made_at.elapsed().as_millis()).unwrap_or(u64::MAX - 1) + 1
    }

    fn saw_bytes(&self, came_in: bool) {
        let now = self.now();
        self.last_byte.store(now, Relaxed);
        if !came_in {
            self.last_written.store(now, Relaxed);
        }
        let is_head = came_in
            && self.in_flight.load(Relaxed) == 0
            && self.head_since.load(Relaxed) == 0
            && !self.is_http2.load(Relaxed);
        if is_head {
            self.head_since.store(now, Relaxed);
        }
    }
}

/// Counts a request as under way until it is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Watch>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Relaxed);
        self.0.last_byte.store(self.0.now(), Relaxed);
    }
}

/// A connection whose bytes are noticed.
#[derive(Debug)]
pub(crate) struct Watched<I> {
    io: I,
    watch: Arc<Watch>,
}

impl<I> Watched<I> {
    pub(crate) fn new(io: I, watch: Arc<Watch>) -> Self {
        Self { io, watch }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) {
            self.watch.saw_bytes(false);
        }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.io).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.saw_bytes(true);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write(cx, buf);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const BOUNDS: Bounds = Bounds { head: Duration::from_secs(10), idle: Duration::from_secs(75) };

    #[tokio::test(start_paused = true)]
    async fn a_head_that_does_not_end_is_overdue_however_busy_its_sender_is() {
        let watch = Watch::new(BOUNDS);
        for _ in 0..10 {
            watch.saw_bytes(true);
            assert_ne!(watch.standing(), Standing::Overdue);
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(watch.standing(), Standing::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_came_before_its_turn_waits_for_the_answer_before_it() {
        let watch = Watch::new(BOUNDS);
        watch.saw_bytes(true);
        for _ in 0..20 {
            advance(Duration::from_secs(1)).await;
            watch.saw_bytes(false);
            assert_ne!(watch.standing(), Standing::Overdue);
        }
        advance(BOUNDS.head).await;
        assert_eq!(watch.standing(), Standing::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_may_take_as_long_as_its_own_deadlines_say() {
        let watch = Watch::new(BOUNDS);
        watch.saw_bytes(true);
        let request = watch.request_began(false);
        advance(Duration::from_secs(600)).await;
        assert_ne!(watch.standing(), Standing::Overdue);
        drop(request);
        advance(Duration::from_secs(74)).await;
        assert_ne!(watch.standing(), Standing::Overdue);
        advance(Duration::from_secs(1)).await;
        assert_eq!(watch.standing(), Standing::Overdue);
    }

    #[tokio::test(start_paused = true)]
    async fn an_http2_connection_may_ping_without_being_taken_for_a_slow_head() {
        let watch = Watch::new(BOUNDS);
        drop(watch.request_began(true));
        watch.saw_bytes(true);
        advance(Duration::from_secs(20)).await;
        assert_ne!(watch.standing(), Standing::Overdue);
    }
}
