//! Takes connections in, within their number.

use std::{net::SocketAddr, sync::Arc, time::Duration};

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
pub(super) async fn accept(
    listener: TcpListener,
    mut stop: watch::Receiver<bool>,
    mut hand_on: impl FnMut(TcpStream, SocketAddr),
) {
    loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((connection, from)) => hand_on(connection, from),
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(PAUSE).await;
            }
        }
    }
}

/// Refuses a connection because there are as many as allowed.
pub(super) fn refuse(connection: &TcpStream, from: SocketAddr) {
    tracing::warn!(%from, "refused a connection: there are as many as allowed");
    // A client that cannot take even this little is not waited for.
    let _ = connection.try_write(FULL);
}

/// Accepts the connections of clients and hands each to the worker with the fewest.
pub(crate) struct Acceptor {
    pub(crate) listener: TcpListener,
    pub(crate) workers: Arc<Workers>,
    pub(crate) connections_max: usize,
    pub(crate) meter: Arc<Meter>,
    pub(crate) stop: watch::Receiver<bool>,
}

impl Acceptor {
    pub(crate) async fn run(self) {
        let Self { listener, workers, connections_max, meter, stop } = self;
        accept(listener, stop, |connection, from| {
            if workers.connections() >= connections_max || workers.are_behind() {
                meter.record_refused_connection();
                return refuse(&connection, from);
            }
            let handed_on = connection.into_std().map(|connection| workers.take(connection));
            if let Err(error) = handed_on {
                tracing::warn!(%error, "a connection could not be handed on");
            }
        })
        .await;
    }
}
