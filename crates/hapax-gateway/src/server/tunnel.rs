//! A connection that goes on in another protocol: bytes both ways, which nobody here looks at.

use std::{
    io,
    pin::pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::BytesMut;
use futures_util::future::{Either, select};
use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{CONNECTION, UPGRADE},
};
use http_body::Body;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    sync::watch as channel,
    time::{Instant, sleep, sleep_until, timeout},
};

use crate::{
    admin::PresenceGuard,
    client::UpgradeOffer,
    proxy::{GrantedUpgrade, UpgradeWish},
};

/// Bytes that are carried at once, for each direction.
const PIECE_BYTES: usize = 8 << 10;
/// How long the one end may go on when the other has ended.
const CLOSING_TIME_MAX: Duration = Duration::from_secs(5);
/// How long it has to be silent to be ended while the gateway drains.
const DRAIN_SILENCE: Duration = Duration::from_secs(1);
/// How long it may go on while the gateway drains, however busy it is.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(5);

/// A request whose client would go on in another protocol, until it is answered.
pub(super) struct PendingUpgrade {
    wish: UpgradeWish,
    client: OnUpgrade,
}

impl PendingUpgrade {
    /// What a request wishes, if it is one that may; the request then says so to whoever passes it on.
    pub(super) fn of<B: Body>(request: &mut Request<B>) -> Option<Self> {
        if !request.headers().contains_key(UPGRADE) {
            return None;
        }
        let wish = UpgradeWish::new(UpgradeOffer::of(request)?);
        let client = request.extensions_mut().remove::<OnUpgrade>()?;
        request.extensions_mut().insert(wish.clone());
        Some(Self { wish, client })
    }

    /// Makes a tunnel of both connections, if the upstream answered that it switches.
    pub(super) fn answered<B>(
        self,
        response: &mut Response<B>,
        counted: impl FnOnce() -> PresenceGuard,
    ) -> Option<Tunnel> {
        let upstream = self.wish.granted()?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return None;
        }
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, upstream.upstream.protocol.clone());
        Some(Tunnel { client: self.client, upstream, _counted: counted() })
    }
}

/// What a connection of a client has become, if it is no longer HTTP.
#[derive(Clone, Default)]
pub(super) struct TunnelSlot(Arc<Mutex<Option<Tunnel>>>);

impl TunnelSlot {
    pub(super) fn put(&self, tunnel: Tunnel) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(tunnel);
    }

    pub(super) fn take(&self) -> Option<Tunnel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A connection of a client and one of its own to the upstream.
pub(super) struct Tunnel {
    client: OnUpgrade,
    upstream: GrantedUpgrade,
    /// Counts it as open.
    _counted: PresenceGuard,
}

impl Tunnel {
    /// Carries bytes until either end has ended, nothing is said for too long, somebody does not
    /// take what is said within `taken_within`, or the gateway drains.
    pub(super) async fn run(self, taken_within: Duration, draining: channel::Receiver<bool>) {
        let Self { client, upstream: GrantedUpgrade { upstream, silence_max, turn }, _counted } =
            self;
        // The client hung up before the answer had left.
        let Ok(client) = client.await else { return };
        let (mut from_client, mut to_client) = split(TokioIo::new(client));
        let (mut from_upstream, mut to_upstream) = split(upstream.io);
        let silence = Silence::new();
        let carrying = async {
            let nothing = BytesMut::new();
            let up =
                pin!(carry(&mut from_client, &mut to_upstream, nothing, (&silence, taken_within)));
            let down = pin!(carry(
                &mut from_upstream,
                &mut to_client,
                upstream.read_ahead,
                (&silence, taken_within)
            ));
            match select(up, down).await {
                Either::Left((Ok(()), down)) => drop(timeout(CLOSING_TIME_MAX, down).await),
                Either::Right((Ok(()), up)) => drop(timeout(CLOSING_TIME_MAX, up).await),
                Either::Left((Err(error), _)) | Either::Right((Err(error), _)) => {
                    tracing::debug!(%error, "a connection in another protocol broke off");
                }
            }
        };
        tokio::select! {
            () = carrying => {}
            () = silence.lasts(silence_max) => {
                tracing::debug!("a connection in another protocol was silent for too long");
            }
            () = drained(draining, &silence) => {}
        }
        drop(turn);
    }
}

/// Ends when a tunnel should, because the gateway drains: between what is said, if there is a gap.
async fn drained(mut draining: channel::Receiver<bool>, silence: &Silence) {
    let _ = draining.wait_for(|draining| *draining).await;
    let _ = timeout(DRAIN_TIME_MAX, silence.lasts(DRAIN_SILENCE)).await;
}

/// Carries bytes one way, `first` before any other, until the end of `from`, which is told to `to`.
async fn carry(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    first: BytesMut,
    (silence, taken_within): (&Silence, Duration),
) -> io::Result<()> {
    let mut piece = first;
    loop {
        if !piece.is_empty() {
            silence.broken();
            let writing = async {
                to.write_all(&piece).await?;
                to.flush().await
            };
            timeout(taken_within, writing).await.map_err(io::Error::from)??;
            piece.clear();
        }
        piece.reserve(PIECE_BYTES);
        if from.read_buf(&mut piece).await? == 0 {
            return to.shutdown().await;
        }
    }
}

/// For how long nobody has said anything.
struct Silence {
    began: Instant,
    /// When it was broken last, in milliseconds since then.
    broken: AtomicU64,
}

impl Silence {
    fn new() -> Self {
        Self { began: Instant::now(), broken: AtomicU64::new(0) }
    }

    fn broken(&self) {
        let since = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.broken.store(since, Relaxed);
    }

    /// Ends when it has lasted for so long.
    async fn lasts(&self, max: Duration) {
        loop {
            let last = Duration::from_millis(self.broken.load(Relaxed));
            match self.began.checked_add(last).and_then(|last| last.checked_add(max)) {
                Some(end) if end <= Instant::now() => return,
                Some(end) => sleep_until(end).await,
                // Longer than a clock can show.
                None => sleep(Duration::MAX).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silence_lasts_until_it_is_broken() {
        let silence = Silence::new();
        let minute = Duration::from_secs(60);
        for _ in 0..3 {
            assert!(timeout(minute / 2, silence.lasts(minute)).await.is_err());
            silence.broken();
        }
        assert!(timeout(minute, silence.lasts(minute)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_before_comes_first_and_the_end_is_told() {
        let (mut said, mut from) = duplex(64);
        let (mut to, mut heard) = duplex(64);
        said.write_all(b" world").await.unwrap();
        drop(said);
        let silence = Silence::new();
        let first = BytesMut::from(&b"hello"[..]);
        carry(&mut from, &mut to, first, (&silence, CLOSING_TIME_MAX)).await.unwrap();
        let mut all = String::new();
        heard.read_to_string(&mut all).await.unwrap();
        assert_eq!(all, "hello world");
    }

    #[tokio::test(start_paused = true)]
    async fn an_end_that_takes_nothing_is_not_waited_for() {
        let (mut said, mut from) = duplex(64);
        let (mut to, _heard) = duplex(4);
        said.write_all(b"more than it takes").await.unwrap();
        let silence = Silence::new();
        let failed = carry(&mut from, &mut to, BytesMut::new(), (&silence, CLOSING_TIME_MAX)).await;
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_gateway_that_drains_waits_for_a_gap_and_not_for_ever() {
        let (stop, draining) = channel::channel(false);
        let silence = Silence::new();
        let quiet = drained(draining.clone(), &silence);
        assert!(timeout(DRAIN_TIME_MAX, quiet).await.is_err(), "nobody has told it to stop");
        stop.send_replace(true);
        silence.broken();
        let began = Instant::now();
        drained(draining.clone(), &silence).await;
        assert_eq!(began.elapsed(), DRAIN_SILENCE);
        let talk = async {
            loop {
                silence.broken();
                sleep(DRAIN_SILENCE / 4).await;
            }
        };
        // Whichever is polled first, somebody has just spoken.
        silence.broken();
        let began = Instant::now();
        tokio::select! {
            () = talk => {}
            () = drained(draining, &silence) => {}
        }
        assert_eq!(began.elapsed(), DRAIN_TIME_MAX);
    }
}
