//! The page of `hapax demo --keep`: one sees every key, kills the gateway and starts storms.
//!
//! - `access` says who may ask, `routes` what there is to ask for;
//! - `supervisor` keeps the gateway up and kills it, `storm` sends many orders many times;
//! - `keys` reads the gateway's records, `timeline` is one of them in order of time, `overview` is
//!   everything at one glance;
//! - `page` is what a browser gets.

mod access;
mod keys;
mod overview;
mod page;
mod purchase;
mod refusal;
mod routes;
mod storm;
mod supervisor;
mod timeline;

use std::{net::SocketAddr, sync::Arc};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinSet};

use self::{
    access::PageAccess, keys::KeyReader, purchase::PURCHASES_AT_ONCE_MAX, refusal::ActionRefusal,
    storm::StormSlot, supervisor::Supervisor,
};
use super::{DemoStage, Venue, error::DemoError, gateway::random_token};

/// Most connections of browsers; further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// Most orders there are, storms included. Every look at the page lists them all.
const ORDERS_MAX: usize = 5_000;

/// The page, until it is dropped.
#[derive(Debug)]
pub(super) struct Console {
    _serving: JoinSet<()>,
}

/// What every request shares.
#[derive(Debug)]
struct Context {
    access: PageAccess,
    supervisor: Arc<Supervisor>,
    keys: KeyReader,
    storm: StormSlot,
    purchases: Semaphore,
    behind: Venue,
    direct: Venue,
}

impl Console {
    /// Serves on this listener, and keeps everything on the stage running meanwhile.
    pub(super) fn open(
        listener: TcpListener,
        address: SocketAddr,
        stage: DemoStage,
    ) -> Result<Self, DemoError> {
        let DemoStage { gateway, behind, direct, plan: _, directory } = stage;
        let keys = KeyReader::new(&gateway);
        let supervisor = Arc::new(Supervisor::new(gateway, keys.clone(), directory));
        let context = Context {
            access: PageAccess::new(address, random_token()?),
            supervisor: Arc::clone(&supervisor),
            keys,
            storm: StormSlot::default(),
            purchases: Semaphore::new(PURCHASES_AT_ONCE_MAX),
            behind,
            direct,
        };
        let mut serving = JoinSet::new();
        serving.spawn(supervisor.watch());
        serving.spawn(serve(listener, Arc::new(context)));
        Ok(Self { _serving: serving })
    }
}

impl Context {
    /// Refuses new orders where there would be too many.
    fn has_room_for(&self, orders: usize) -> Result<(), ActionRefusal> {
        let there = self.behind.ledger.counts().len();
        if there + orders > ORDERS_MAX { Err(ActionRefusal::Full) } else { Ok(()) }
    }
}

async fn serve(listener: TcpListener, context: Arc<Context>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((connection, _)) = listener.accept().await else { return };
        let context = Arc::clone(&context);
        connections.spawn(async move {
            let _permit = permit;
            let service = service_fn(|request| routes::answer(&context, request));
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new());
            // A browser that goes away is none of our trouble.
            let _ = http.serve_connection(TokioIo::new(connection), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}
