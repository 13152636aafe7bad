//! An API made of frames that does not take every request: it refuses streams, and goes away as
//! servers do when they are replaced under load.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::frames::{END_STREAM, Frames, answer, data, go_away, refuse};
use crate::world::{Setup, ask, post};

/// How it takes leave.
#[derive(Debug, Clone, Copy)]
enum Manner {
    /// It refuses its first streams, so many of them, and takes the rest.
    RefusesFirst(usize),
    /// It takes so many streams on each connection, says so, and looks at no other.
    GoesAwayAfter(usize),
    /// It has the effect, says that it may have had it, and hangs up without an answer.
    Vanishes,
}

/// The API; the body of a request is the name of its effect.
struct Leaving {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Ledger {
    effects: Mutex<HashMap<String, usize>>,
    untouched: AtomicUsize,
}

impl Leaving {
    async fn start(manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, ledger) = (listener.local_addr().unwrap(), Arc::<Ledger>::default());
        let seen = Arc::clone(&ledger);
        let serving = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, manner, Arc::clone(&seen)));
            }
        });
        Self { address, ledger, serving }
    }

    fn effects(&self) -> HashMap<String, usize> {
        self.ledger.effects.lock().unwrap().clone()
    }

    /// How many streams it did not look at.
    fn untouched(&self) -> usize {
        self.ledger.untouched.load(Relaxed)
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut connection: TcpStream, manner: Manner, ledger: Arc<Ledger>) -> Option<()> {
    connection.read_exact(&mut [0; 24]).await.ok()?;
    let mut frames = Frames::accept(connection).await;
    let (mut bodies, mut taken, mut last) = (HashMap::<u32, Vec<u8>>::new(), 0, u32::MAX);
    loop {
        let (stream, bytes, is_done) = frames.piece().await?;
        let body = bodies.entry(stream).or_default();
        body.extend_from_slice(&bytes);
        if !is_done {
            continue;
        }
        let refused = matches!(manner, Manner::RefusesFirst(first) if ledger.untouched() < first);
        if refused || stream > last {
            ledger.untouched.fetch_add(1, Relaxed);
            if refused {
                frames.send(&refuse(stream)).await;
            }
            continue;
        }
        let name = String::from_utf8(std::mem::take(body)).unwrap();
        *ledger.effects.lock().unwrap().entry(name.clone()).or_default() += 1;
        taken += 1;
        match manner {
            Manner::Vanishes => {
                frames.send(&go_away(stream)).await;
                return None;
            }
            Manner::GoesAwayAfter(most) if taken == most => {
                last = stream;
                frames.send(&go_away(last)).await;
            }
            Manner::GoesAwayAfter(_) | Manner::RefusesFirst(_) => {}
        }
        frames.send(&[answer(stream), data(stream, END_STREAM, name.as_bytes())].concat()).await;
    }
}

impl Ledger {
    fn untouched(&self) -> usize {
        self.untouched.load(Relaxed)
    }
}

fn gateway(upstream: &Leaving) -> Setup {
    Setup::new(upstream.address).config("[upstream]\nprotocol = \"http2\"\n")
}

#[tokio::test]
async fn a_refused_stream_is_sent_once_more_on_its_way() {
    let upstream = Leaving::start(Manner::RefusesFirst(2)).await;
    let gateway = gateway(&upstream).start().await;
    let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((answer.status, answer.text()), (201, "ten"));
    assert_eq!((upstream.untouched(), upstream.effects()["ten"]), (2, 1));
}

#[tokio::test]
async fn what_the_upstream_refused_for_good_ran_nothing_and_its_key_stays_free() {
    let upstream = Leaving::start(Manner::RefusesFirst(3)).await;
    let gateway = gateway(&upstream).start().await;
    let request = post("/pay", "k", "ten");
    let refused = ask(gateway.address, &request).await.unwrap();
    let code = refused.code();
    assert_eq!((refused.status, code.as_deref()), (503, Some("execution-not-started")));
    assert_eq!(upstream.effects().len(), 0);
    let answer = ask(gateway.address, &request).await.unwrap();
    assert_eq!((answer.status, answer.is_replay(), upstream.effects()["ten"]), (201, false, 1));
}

#[tokio::test]
async fn an_upstream_that_goes_away_under_load_leaves_nothing_in_doubt() {
    const KEYS: usize = 120;
    let upstream = Leaving::start(Manner::GoesAwayAfter(5)).await;
    let gateway = gateway(&upstream).start().await;
    let mut asking = JoinSet::new();
    for number in 0..KEYS {
        let (to, name) = (gateway.address, format!("payment-{number}"));
        asking.spawn(async move {
            loop {
                let answer = ask(to, post("/pay", &name, &name)).await.unwrap();
                if answer.status == 201 {
                    return assert_eq!(answer.text(), name);
                }
                let code = answer.code();
                assert_eq!((answer.status, code.as_deref()), (503, Some("execution-not-started")));
            }
        });
    }
    while let Some(asked) = asking.join_next().await {
        asked.unwrap();
    }
    let effects = upstream.effects();
    assert_eq!(effects.len(), KEYS);
    assert!(effects.values().all(|effects| *effects == 1), "{effects:?}");
    assert!(upstream.untouched() > 0, "every request was in time");
}

#[tokio::test]
async fn a_stream_that_the_upstream_may_have_looked_at_is_in_doubt() {
    let upstream = Leaving::start(Manner::Vanishes).await;
    let gateway = gateway(&upstream).start().await;
    let request = post("/pay", "k", "ten");
    for (status, code) in [(502, "execution-unanswered"), (409, "outcome-in-doubt")] {
        let answer = ask(gateway.address, &request).await.unwrap();
        assert_eq!((answer.status, answer.code().as_deref()), (status, Some(code)));
    }
    assert_eq!(upstream.effects()["ten"], 1);
}
