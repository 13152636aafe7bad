//! Clients that want to know, and many of them at once.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Answer, PATIENCE, ask};

/// Asks again and again until it is told how it ended, or that nobody knows.
pub(crate) async fn persist(to: SocketAddr, request: &str) -> Answer {
    persist_among(&[to], 0, request).await
}

/// Asks the gateway at `first`, and after it the others in turn, until it has a final answer.
pub(crate) async fn persist_among(to: &[SocketAddr], first: usize, request: &str) -> Answer {
    let asking = async {
        for at in first.. {
            match ask(to[at % to.len()], request).await {
                Some(answer) if is_final(&answer) => return Some(answer),
                Some(_) | None => sleep(PAUSE).await,
            }
        }
        None
    };
    let answer = timeout(PATIENCE, asking).await.ok().flatten();
    assert!(answer.is_some(), "waited in vain for a final answer to {request:?}");
    answer.unwrap()
}

/// How long a client waits before it asks again.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether a client has no reason to ask again.
pub(crate) fn is_final(answer: &Answer) -> bool {
    let (status, code) = (answer.status, answer.code());
    if status == 201 || code.as_deref() == Some("outcome-in-doubt") {
        return true;
    }
    let comes_back = matches!(status, 408 | 409 | 502..=504) && code.is_some();
    assert!(comes_back, "{status} {code:?} is no answer to a retry");
    false
}

/// Many pieces of work, some of them at one time.
pub(crate) struct Many {
    pub(crate) at_once: usize,
}

impl Many {
    /// Does `work` with every item, and fails if one of them does.
    pub(crate) async fn each<T, F>(&self, items: Vec<T>, work: impl Fn(T) -> F)
    where
        T: Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let left = Arc::new(Mutex::new(items.into_iter().map(work).collect::<Vec<_>>()));
        let mut workers = JoinSet::new();
        for _ in 0..self.at_once {
            let left = Arc::clone(&left);
            workers.spawn(async move {
                loop {
                    let Some(next) = left.lock().unwrap().pop() else { return };
                    next.await;
                }
            });
        }
        while let Some(ended) = workers.join_next().await {
            ended.unwrap();
        }
    }
}
