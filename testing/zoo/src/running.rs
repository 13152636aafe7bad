//! A species that listens.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    net::{TcpListener, TcpSocket},
    task::{AbortHandle, JoinSet},
};

use crate::{
    conduct::Conduct,
    connections,
    enclosure::{Enclosure, InducedFailure},
    species::Species,
};

/// Small, so that who does not read soon keeps the rest from being written.
const SEND_BUFFER_BYTES: u32 = 32 * 1024;
const BACKLOG: u32 = 1024;

/// How a species is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where its second instance listens, which has the same effects.
    pub also: SocketAddr,
    /// The file that it keeps its effects and keys in, over its end.
    pub state: Option<PathBuf>,
}

impl Default for Options {
    /// Two free ports of this machine, and nothing kept.
    fn default() -> Self {
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { listen: free, also: free, state: None }
    }
}

/// A server that runs until this is dropped. A handler that is running then comes to its end.
#[derive(Debug)]
pub struct RunningSpecies {
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its second instance listens.
    pub also: SocketAddr,
    enclosure: Arc<Enclosure>,
    listeners: [AbortHandle; 2],
}

/// What every connection of one address has in common.
#[derive(Debug)]
pub(crate) struct SpeciesInstance {
    pub(crate) conduct: Arc<dyn Conduct>,
    pub(crate) enclosure: Arc<Enclosure>,
    pub(crate) number: usize,
    connections: Arc<AtomicU64>,
}

impl Species {
    /// Starts it on a free port of this machine.
    pub async fn start(&self) -> io::Result<RunningSpecies> {
        self.start_with(Options::default()).await
    }

    /// Starts it as told.
    pub async fn start_with(&self, options: Options) -> io::Result<RunningSpecies> {
        let conduct = (self.conduct)();
        let enclosure = Arc::new(Enclosure::open(&*conduct, options.state.as_deref())?);
        let connections = Arc::new(AtomicU64::new(1));
        let (listener, second) = (bind(options.listen)?, bind(options.also)?);
        let (address, also) = (listener.local_addr()?, second.local_addr()?);
        let listeners = [(listener, 0), (second, 1)].map(|(listener, number)| {
            let (conduct, enclosure) = (conduct.clone(), enclosure.clone());
            let connections = connections.clone();
            let instance = SpeciesInstance { conduct, enclosure, number, connections };
            tokio::spawn(listen(listener, Arc::new(instance))).abort_handle()
        });
        Ok(RunningSpecies { address, also, enclosure, listeners })
    }
}

impl RunningSpecies {
    /// Holds every handler from now on between its claim and its effect.
    pub fn hold(&self) {
        self.hold_after(self.handlers_so_far());
    }

    /// Lets so many handlers pass, counted since the start, and holds the others.
    pub fn hold_after(&self, count: usize) {
        self.enclosure.gate.let_pass(count);
    }

    /// Lets all handlers go on.
    pub fn release(&self) {
        self.enclosure.gate.let_pass(usize::MAX);
    }

    /// Waits until this many handlers have come to where they are held, since the start.
    pub async fn handlers(&self, count: usize) {
        self.enclosure.gate.come(count).await;
    }

    /// How many handlers have come there, since the start.
    pub fn handlers_so_far(&self) -> usize {
        self.enclosure.gate.count()
    }

    /// Lets the next run of the handler fail.
    pub fn fail_next(&self, failure: InducedFailure) {
        self.enclosure.induce(failure);
    }

    /// How often something of this kind (`payments`) happened that a client called so.
    pub fn effects(&self, kind: &str, marker: &str) -> usize {
        self.enclosure.effects.of(kind, Some(marker)).len()
    }
}

impl Drop for RunningSpecies {
    fn drop(&mut self) {
        self.listeners.iter().for_each(AbortHandle::abort);
    }
}

impl SpeciesInstance {
    pub(crate) fn number_connection(&self) -> u64 {
        self.connections.fetch_add(1, Ordering::Relaxed)
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    // Connections have it from here.
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Dropping it drops the connections as well.
async fn listen(listener: TcpListener, instance: Arc<SpeciesInstance>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => if let Ok((stream, _)) = accepted {
                connections.spawn(connections::serve(stream, instance.clone()));
            },
            Some(_) = connections.join_next() => {}
        }
    }
}
