//! Clients who ask for every key twice, until they are told to stop.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tokio::task::JoinSet;

use crate::world::{Upstream, ask, post, until};

const CLIENTS: usize = 6;

/// What was answered under a key: its status, and whether it was a replay; `None` if nothing was.
struct Heard {
    key: String,
    answer: Option<(u16, bool)>,
}

pub(super) struct Clients {
    done: Arc<AtomicBool>,
    asking: JoinSet<Vec<Heard>>,
}

impl Clients {
    /// Who ask here.
    pub(super) fn start(to: SocketAddr) -> Self {
        let (done, mut asking) = (Arc::<AtomicBool>::default(), JoinSet::new());
        for client in 0..CLIENTS {
            let done = Arc::clone(&done);
            asking.spawn(async move {
                let mut heard = Vec::new();
                for number in 0.. {
                    let key = format!("{client}-{number}");
                    for _ in 0..2 {
                        let answer = ask(to, post("/pay", &key, "ten")).await;
                        let answer = answer.map(|answer| (answer.status, answer.is_replay()));
                        heard.push(Heard { key: key.clone(), answer });
                    }
                    if done.load(Relaxed) {
                        break;
                    }
                }
                heard
            });
        }
        Self { done, asking }
    }

    /// Every one of them was answered, the second time with the first answer, and every key had one effect.
    pub(super) async fn stop_satisfied(self, upstream: &Upstream) {
        self.done.store(true, Relaxed);
        let heard: Vec<_> = self.asking.join_all().await.into_iter().flatten().collect();
        for pair in heard.chunks_exact(2) {
            let key = &pair[0].key;
            assert_eq!(pair[0].answer.map(|(status, _)| status), Some(201), "{key}");
            assert_eq!(pair[1].answer, Some((201, true)), "{key}");
        }
        assert_eq!(upstream.twice(), Vec::<String>::new());
        assert_eq!(upstream.total(), heard.len() / 2);
        assert!(heard.len() > 100, "{}", heard.len());
    }
}

/// Ends when this many more effects happened.
pub(super) async fn some_load(upstream: &Upstream) {
    let before = upstream.total();
    until("some load", async || upstream.total() > before + 20).await;
}
