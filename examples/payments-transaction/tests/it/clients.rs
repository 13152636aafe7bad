//! Clients that pay one order after the other, and do not give one up before it is paid.

use std::{
    collections::HashMap,
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use hyper_util::client::legacy;
use tokio::{
    sync::{Notify, watch},
    task::JoinSet,
};
use tokio_postgres::Config;

use crate::{
    postgres::{Found, connect, found},
    shop::{client, request, send},
};

/// What a client waits before it asks again.
const PAUSE: Duration = Duration::from_millis(10);

/// A crowd of clients, all asking the server of the moment.
pub(crate) struct Clients {
    heard: Arc<Heard>,
    asking: JoinSet<()>,
}

/// How it went for all of them.
pub(crate) struct Told {
    pub(crate) orders: usize,
    pub(crate) cut: usize,
    pub(crate) unheard: usize,
}

/// What all of them heard.
#[derive(Default)]
struct Heard {
    /// Receipts by order.
    receipts: Mutex<HashMap<String, Bytes>>,
    /// Requests whose connection broke before an answer came.
    cut: AtomicUsize,
    /// Orders whose first receipt was a replay: paid before, and nobody had heard of it.
    unheard: AtomicUsize,
    more: Notify,
    enough: AtomicBool,
}

impl Clients {
    /// Lets so many clients pay at whatever address is current.
    pub(crate) fn start(clients: usize, address: &watch::Receiver<String>) -> Self {
        let heard = Arc::new(Heard::default());
        let mut asking = JoinSet::new();
        for number in 0..clients {
            asking.spawn(pay_all(number, address.clone(), Arc::clone(&heard)));
        }
        Self { heard, asking }
    }

    /// Orders that are known to be paid.
    pub(crate) fn paid(&self) -> usize {
        self.heard.receipts.lock().unwrap().len()
    }

    /// Returns when so many orders are known to be paid.
    pub(crate) async fn until_paid(&self, orders: usize) {
        while self.paid() < orders {
            self.heard.more.notified().await;
        }
    }

    /// Lets every client pay the order it is at, and compares what they heard with what is stored.
    pub(crate) async fn check(mut self, config: &Config) -> Told {
        self.heard.enough.store(true, SeqCst);
        while let Some(ended) = self.asking.join_next().await {
            ended.unwrap();
        }
        let receipts = self.heard.receipts.lock().unwrap().clone();
        let count = i64::try_from(receipts.len()).unwrap();
        let all = Found { payments: count, events: count, records: count };
        assert_eq!(found(config).await, all);
        let stored = "SELECT p.order_id, convert_from(e.payload, 'UTF8'), \
                             json_build_object('p', p.id)->>'p' \
                      FROM payments AS p JOIN hapax.outbox AS e ON e.key = p.order_id";
        let stored = connect(config).await.query(stored, &[]).await.unwrap();
        assert_eq!(stored.len(), receipts.len());
        for row in stored {
            let (order, event): (&str, &str) = (row.get(0), row.get(1));
            assert_eq!(receipts[order], event, "the receipt is not what was published");
            let payment: &str = row.get(2);
            assert!(
                event.contains(&format!("\"payment\":{payment}}}")),
                "{event} is not {payment}"
            );
        }
        let completed = "SELECT count(*) FROM hapax.operations WHERE state = 3";
        let completed: i64 = connect(config).await.query_one(completed, &[]).await.unwrap().get(0);
        assert_eq!(completed, count);
        let (cut, unheard) = (&self.heard.cut, &self.heard.unheard);
        Told { orders: receipts.len(), cut: cut.load(SeqCst), unheard: unheard.load(SeqCst) }
    }
}

async fn pay_all(number: usize, mut address: watch::Receiver<String>, heard: Arc<Heard>) {
    let client = client();
    for next in 0.. {
        if heard.enough.load(SeqCst) {
            return;
        }
        let order = format!("order-{number}-{next}");
        let body = format!(r#"{{"order":"{order}","account":"ada","cents":1}}"#);
        // Once to be paid, and once more as a client does that lost its receipt.
        let mut receipt = None;
        while receipt.is_none() || !heard.enough.load(SeqCst) {
            let url = address.borrow_and_update().clone();
            match send(&client, request(&url, &order), &body).await {
                Ok(answer) if answer.status == 201 => {
                    let replayed = answer.is_replay();
                    match receipt.replace(answer.body.clone()) {
                        Some(first) => {
                            assert!(replayed, "{order} was paid twice");
                            assert_eq!(first, answer.body, "two answers to {order}");
                            break;
                        }
                        None => heard.paid(&order, answer.body, replayed),
                    }
                }
                // Not now, or nobody there: the same again.
                Ok(answer) => {
                    assert!([409, 503].contains(&answer.status), "{answer:?}");
                    tokio::time::sleep(PAUSE).await;
                }
                Err(error) => {
                    heard.cut.fetch_add(usize::from(!is_refused(&*error)), SeqCst);
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Nobody listens: nothing was sent.
fn is_refused(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<legacy::Error>().is_some_and(legacy::Error::is_connect)
}

impl Heard {
    fn paid(&self, order: &str, receipt: Bytes, replayed: bool) {
        self.unheard.fetch_add(usize::from(replayed), SeqCst);
        self.receipts.lock().unwrap().insert(order.to_owned(), receipt);
        self.more.notify_waiters();
        self.more.notify_one();
    }
}
