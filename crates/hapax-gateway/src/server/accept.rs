//! Takes connections in and hands them to the worker with the fewest.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use hapax_core::Store;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    time::sleep,
};

use super::worker::Workers;
use crate::admin::Meter;

/// What a client hears when there are as many connections as allowed.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
                      content-length: 0\r\n\r\n";
/// How long to wait when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections until told to stop.
pub(crate) struct Acceptor<S: Store> {
    pub(crate) listener: TcpListener,
    pub(crate) workers: Arc<Workers<S>>,
    pub(crate) connections_max: usize,
    pub(crate) meter: Arc<Meter>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl<S: Store> Acceptor<S> {
    pub(crate) async fn run(mut self) {
        loop {
            let accepted = tokio::select! {
                biased;
                _ = self.stop.wait_for(|stop| *stop) => return,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((connection, from)) => self.hand_on(connection, from),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    fn hand_on(&self, connection: TcpStream, from: SocketAddr) {
        if self.workers.connections() >= self.connections_max {
            tracing::warn!(%from, "refused a connection: there are as many as allowed");
            self.meter.record_refused_connection();
            // A client that cannot take even this little is not waited for.
            let _ = connection.try_write(FULL);
            return;
        }
        if let Err(error) = connection.into_std().map(|connection| self.workers.take(connection)) {
            tracing::warn!(%error, "a connection could not be handed on");
        }
    }
}
