//! Exchanges cut at every byte, in every direction: one effect, and the whole original in the end.
//!
//! Every byte is tried with an orderly end, every eighth with a reset and with silence;
//! `cargo xtask chaos` tries every byte with all of them.

use std::{env, ops::RangeInclusive, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use crate::{
    cuts_proxy::{Cut, How, Part, Proxy, read_message},
    world::{Behaviour, Gateway, Many, PATIENCE, Setup, Upstream, persist, post},
};

/// Short times, so that silence ends soon.
const CONFIG: &str = r#"
limits = { head_timeout = "500ms", body_timeout = "500ms", idle_timeout = "1s" }

[defaults]
timeout = "1s"
lease = "3s"
in_flight = "wait"

[[route]]
match = "POST /resend"
recovery = "resend"

[[route]]
match = "POST /hold"
recovery = "hold"
"#;

const AT_ONCE: Many = Many { at_once: 48 };

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cut_off_at_any_byte_is_told_the_original_when_it_asks_again() {
    let world = World::start(false).await;
    let whole = world.exchange("/hold", "first").await;
    let request_bytes = world.request("/hold", &key(0, Part::Request, How::Fin)).len();
    let mut cuts = cuts(Part::Request, 0..=request_bytes);
    cuts.extend(self::cuts(Part::Answer, 0..=whole.len()));
    let world = &world;
    AT_ONCE
        .each(cuts, |cut| {
            let world = Arc::clone(world);
            async move { world.cut_by_client(cut).await }
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_cut_off_at_any_byte_is_sent_the_same_key_and_has_one_effect() {
    let world = World::start(true).await;
    world.cut_all_upstream("/resend").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_cut_off_at_any_byte_and_held_is_never_asked_twice() {
    let world = World::start(false).await;
    world.cut_all_upstream("/hold").await;
}

struct World {
    upstream: Upstream,
    proxy: Proxy,
    gateway: Gateway,
}

impl World {
    /// Receipts have numbers of four digits, so that all answers are of one length.
    async fn start(deduplicates: bool) -> Arc<Self> {
        let behaviour = Behaviour { deduplicates, receipts_before: 1000, ..Behaviour::default() };
        let upstream = Upstream::start(behaviour).await;
        let proxy = Proxy::start(upstream.address).await;
        let gateway = Setup::new(proxy.address).config(CONFIG).start().await;
        Arc::new(Self { upstream, proxy, gateway })
    }

    /// About 1 KiB, like its answer.
    fn request(&self, path: &str, key: &str) -> String {
        post(path, key, &"0123456789abcdef".repeat(52))
    }

    /// The bytes of a whole answer.
    async fn exchange(&self, path: &str, key: &str) -> Vec<u8> {
        let mut client = TcpStream::connect(self.gateway.address).await.unwrap();
        client.write_all(self.request(path, key).as_bytes()).await.unwrap();
        read_message(&mut BufReader::new(client)).await.unwrap()
    }

    async fn cut_by_client(&self, cut: Cut) {
        let key = key(cut.at, cut.of, cut.how);
        let request = self.request("/hold", &key);
        let mut client = TcpStream::connect(self.gateway.address).await.unwrap();
        let sent = if cut.of == Part::Request { cut.at.min(request.len()) } else { request.len() };
        client.write_all(&request.as_bytes()[..sent]).await.unwrap();
        if cut.of == Part::Answer {
            timeout(PATIENCE, client.read_exact(&mut vec![0; cut.at])).await.unwrap().unwrap();
        }
        let kept_open = match cut.how {
            How::Fin => {
                client.shutdown().await.unwrap();
                let _ = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await.unwrap();
                None
            }
            How::Rst => {
                client.set_zero_linger().unwrap();
                None
            }
            How::Silence if cut.of == Part::Request => {
                let _ = timeout(PATIENCE, client.read_to_end(&mut Vec::new())).await.unwrap();
                None
            }
            How::Silence => Some(client),
        };
        if sent < request.len() {
            assert_eq!(self.upstream.effects(&key), 0, "half a request was run: {cut:?}");
        }
        let answer = persist(self.gateway.address, &request).await;
        assert_eq!(answer.status, 201, "{cut:?}: {}", answer.text());
        assert_eq!(self.upstream.receipts(&key), [answer.body], "{cut:?}");
        drop(kept_open);
    }

    async fn cut_all_upstream(self: &Arc<Self>, path: &'static str) {
        self.exchange(path, "first").await;
        let (request_bytes, answer_bytes) = self.proxy.bytes();
        let mut cuts = cuts(Part::Request, 0..=request_bytes);
        // After its last byte the next exchange could have the connection, and be cut instead.
        cuts.extend(self::cuts(Part::Answer, 0..=answer_bytes - 1));
        AT_ONCE
            .each(cuts, |cut| {
                let world = Arc::clone(self);
                async move { world.cut_by_proxy(path, cut).await }
            })
            .await;
        assert_eq!(self.proxy.left(), Vec::<String>::new(), "nobody sent these");
        assert_eq!(self.upstream.twice(), Vec::<String>::new());
    }

    async fn cut_by_proxy(&self, path: &str, cut: Cut) {
        let key = key(cut.at, cut.of, cut.how);
        self.proxy.plan(&key, cut);
        let request = self.request(path, &key);
        let answer = persist(self.gateway.address, &request).await;
        let again = persist(self.gateway.address, &request).await;
        let receipts = self.upstream.receipts(&key);
        match answer.status {
            201 => {
                assert_eq!(receipts, [answer.body], "{cut:?}");
                assert_eq!((again.status, &again.body[..]), (201, &receipts[0][..]), "{cut:?}");
            }
            status => {
                assert_eq!((path, status), ("/hold", 409), "{cut:?}: {}", answer.text());
                assert_eq!((again.status, again.code()), (409, answer.code()), "{cut:?}");
                assert!(receipts.len() <= 1, "{cut:?}");
            }
        }
    }
}

/// A key of the same length for every cut.
fn key(at: usize, part: Part, how: How) -> String {
    let (part, how) = (format!("{part:?}"), format!("{how:?}"));
    format!("{part:_<7}-{how:_<7}-{at:05}")
}

/// Every cut of a part after one of these numbers of bytes.
fn cuts(of: Part, after: RangeInclusive<usize>) -> Vec<Cut> {
    let all = env::var_os("HAPAX_CHAOS_EVERY_BYTE").is_some();
    let every = |how, step| after.clone().step_by(step).map(move |at| Cut { of, at, how });
    let step = if all { 1 } else { 8 };
    let mut cuts: Vec<_> = every(How::Fin, 1).collect();
    cuts.extend(every(How::Rst, step).chain(every(How::Silence, step)));
    cuts
}
