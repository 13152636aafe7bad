//! Worker threads, each with a runtime, connections and upstream connections of its own.
//!
//! Requests never change their thread, so nothing on their way is contended.

use std::{
    io,
    net::TcpStream,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread::{self, JoinHandle},
};

use tokio::{
    runtime,
    sync::{mpsc, watch},
};

use super::connection::{self, Serving, Wiring};

/// Most connections that wait for one worker to take them up. One that is this far behind would
/// not answer them in time.
const ARRIVING_MAX: usize = 1024;

/// All workers of a gateway.
#[derive(Debug)]
pub(crate) struct Workers {
    workers: Vec<ServerWorker>,
    stop: watch::Sender<bool>,
}

#[derive(Debug)]
struct ServerWorker {
    wiring: Arc<Wiring>,
    connections: Arc<AtomicUsize>,
    inbox: mpsc::Sender<(TcpStream, OpenConnection)>,
    /// Taken when it is waited for.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Workers {
    /// Starts one thread for each wiring.
    pub(crate) fn start(wirings: Vec<Arc<Wiring>>) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let workers = wirings.into_iter().enumerate().map(|(number, wiring)| {
            let (inbox, arriving) = mpsc::channel(ARRIVING_MAX);
            let connections = Arc::new(AtomicUsize::new(0));
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            let served = Arc::clone(&wiring);
            let mut stopped = stopped.clone();
            let thread =
                thread::Builder::new().name(format!("hapax-worker-{number}")).spawn(move || {
                    runtime.block_on(async {
                        tokio::select! {
                            () = work(arriving, served) => {}
                            _ = stopped.wait_for(|stop| *stop) => {}
                        }
                    });
                })?;
            Ok(ServerWorker { wiring, connections, inbox, thread: Mutex::new(Some(thread)) })
        });
        Ok(Self { workers: workers.collect::<io::Result<_>>()?, stop })
    }

    /// How many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.workers.iter().map(|worker| worker.connections.load(Relaxed)).sum()
    }

    /// Whether the worker with the fewest connections has not taken up as many as may wait for it.
    pub(crate) fn are_behind(&self) -> bool {
        self.idlest().is_none_or(|worker| worker.inbox.capacity() == 0)
    }

    /// Hands a connection to the worker with the fewest.
    pub(crate) fn take(&self, connection: TcpStream) {
        if let Some(worker) = self.idlest() {
            let counted = OpenConnection::new(&worker.connections);
            // A worker that is gone has no clients to disappoint.
            let _ = worker.inbox.try_send((connection, counted));
        }
    }

    fn idlest(&self) -> Option<&ServerWorker> {
        self.workers.iter().min_by_key(|worker| worker.connections.load(Relaxed))
    }

    /// Has new requests served so from now on.
    pub(crate) fn replace(&self, fresh: Vec<Serving>) {
        for (worker, serving) in self.workers.iter().zip(fresh) {
            worker.wiring.serving.store(Arc::new(serving));
        }
    }

    /// How many workers there are.
    pub(crate) fn count(&self) -> usize {
        self.workers.len()
    }

    /// Ends all threads; what still runs on them is cut off.
    pub(crate) fn stop(&self) {
        self.stop.send_replace(true);
        for worker in &self.workers {
            let mut thread = worker.thread.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}

async fn work(mut arriving: mpsc::Receiver<(TcpStream, OpenConnection)>, wiring: Arc<Wiring>) {
    while let Some((connection, counted)) = arriving.recv().await {
        match tokio::net::TcpStream::from_std(connection) {
            Ok(connection) => {
                let wiring = Arc::clone(&wiring);
                tokio::spawn(async move {
                    connection::serve(connection, wiring).await;
                    drop(counted);
                });
            }
            Err(error) => tracing::warn!(%error, "a connection could not be served"),
        }
    }
}

/// Counts a connection as open until it is dropped.
#[derive(Debug)]
pub(super) struct OpenConnection(Arc<AtomicUsize>);

impl OpenConnection {
    pub(super) fn new(connections: &Arc<AtomicUsize>) -> Self {
        connections.fetch_add(1, Relaxed);
        Self(Arc::clone(connections))
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
