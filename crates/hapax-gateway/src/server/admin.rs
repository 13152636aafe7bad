//! Serves operators as clients are served: the same loop, deadlines and limits, apart from clients.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, atomic::AtomicUsize, atomic::Ordering::Relaxed},
};

use axum::Router;
use hapax_tower::{Body, Room, Verdict};
use http::{Request, Response, Version};
use hyper::{body::Incoming, service::Service};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch as channel,
};
use tower_service::Service as _;

use super::{
    accept::{accept, refuse},
    connection::{Protocols, drive},
    pace::{Pace, Paced},
    response_body::{AnswerRoom, ResponseBody},
    watch::{Bounds, ConnectionWatch},
    worker::OpenConnection,
};

/// Most bytes of answers that all operators together may leave.
const ANSWERS_BYTES_MAX: usize = 64 << 20;

/// Serves the pages of operators.
pub(crate) struct AdminServer {
    pub(crate) router: Router,
    pub(crate) connections_max: usize,
    pub(crate) bounds: Bounds,
    pub(crate) body_pace: Pace,
    pub(crate) protocols: Protocols,
}

impl AdminServer {
    /// Serves for as long as the process lives.
    pub(crate) async fn run(self, listener: TcpListener) {
        let (server, open) = (Arc::new(self), Arc::<AtomicUsize>::default());
        let answers = Room::of(ANSWERS_BYTES_MAX);
        let (_never, stop) = channel::channel(false);
        let draining = stop.clone();
        accept(listener, stop, |connection, from| {
            if open.load(Relaxed) >= server.connections_max {
                return refuse(&connection, from);
            }
            let counted = OpenConnection::new(&open);
            let answers = AnswerRoom::new(&answers, ANSWERS_BYTES_MAX);
            let serving = serve(connection, Arc::clone(&server), answers, draining.clone());
            tokio::spawn(async move {
                serving.await;
                drop(counted);
            });
        })
        .await;
    }
}

async fn serve(
    connection: TcpStream,
    server: Arc<AdminServer>,
    answers: AnswerRoom,
    draining: channel::Receiver<bool>,
) {
    let watch = ConnectionWatch::new(server.bounds);
    let (router, body_pace) = (server.router.clone(), server.body_pace);
    let pages = Pages { router, watch: Arc::clone(&watch), answers, body_pace };
    drive(connection, pages, &watch, server.protocols.agreed(None), draining).await;
}

/// Answers the requests of one connection.
struct Pages {
    router: Router,
    watch: Arc<ConnectionWatch>,
    answers: AnswerRoom,
    body_pace: Pace,
}

impl Service<Request<Incoming>> for Pages {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let in_flight = self.watch.request_began(request.version() == Version::HTTP_2);
        let (mut router, answers) = (self.router.clone(), self.answers.clone());
        let request = request.map(|body| Paced::new(body, self.body_pace));
        Box::pin(async move {
            let response = router.call(request).await?.map(Body::new);
            Ok(answers.send(response, Verdict::Page, in_flight.answered(), None))
        })
    }
}
