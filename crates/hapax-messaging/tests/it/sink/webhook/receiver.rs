//! A receiver as people write them: it verifies, keeps what it took, and answers as it is told.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
    thread,
    time::SystemTime,
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use hapax_messaging::sink::webhook::{Secret, TOLERANCE, verify};
use tokio::{net::TcpListener, runtime::Runtime, sync::watch};

use crate::sink::world::Arrived;

pub(super) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What a receiver answers with, made anew for each request.
pub(super) type Answer = Box<dyn Fn() -> Response + Send>;

pub(super) struct Receiver {
    address: SocketAddr,
    desk: Arc<Desk>,
    runtime: Option<Runtime>,
}

struct Desk {
    held: watch::Sender<bool>,
    answer: Mutex<Option<Answer>>,
    taken: Mutex<Vec<Taken>>,
}

/// A request that was taken.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Receiver {
    /// A receiver on a free port that takes what is genuine.
    pub(super) fn start() -> Self {
        let desk = Desk {
            held: watch::Sender::new(false),
            answer: Mutex::new(None),
            taken: Mutex::new(Vec::new()),
        };
        let address = (Ipv4Addr::LOCALHOST, 0).into();
        let mut receiver = Self { address, desk: Arc::new(desk), runtime: None };
        receiver.listen();
        receiver
    }

    /// Listens, on the same port as before if there was one.
    pub(super) fn listen(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = { runtime }.worker_threads(1).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind(self.address).unwrap();
        listener.set_nonblocking(true).unwrap();
        self.address = listener.local_addr().unwrap();
        let app = Router::new().fallback(receive).layer(DefaultBodyLimit::disable());
        let app = app.with_state(Arc::clone(&self.desk));
        runtime.spawn(async move {
            let listener = TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
        self.runtime = Some(runtime);
    }

    /// Ends without a word; connections are cut. When this returns, its port is free.
    pub(super) fn stop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // A runtime must not be waited for inside of another.
            thread::spawn(move || drop(runtime)).join().unwrap();
        }
    }

    /// From now on answers like this instead of reading what it gets.
    pub(super) fn answer(&self, answer: impl Fn() -> Response + Send + 'static) {
        *self.desk.answer.lock().unwrap() = Some(Box::new(answer));
    }

    /// Whether to leave requests unanswered.
    pub(super) fn hold(&self, held: bool) {
        self.desk.held.send_replace(held);
    }

    pub(super) fn address(&self) -> String {
        format!("http://{}/hooks?of=me", self.address)
    }

    /// What was taken since it was asked before.
    pub(super) fn taken(&self) -> Vec<Taken> {
        std::mem::take(&mut self.desk.taken.lock().unwrap())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn receive(State(desk): State<Arc<Desk>>, headers: HeaderMap, body: Bytes) -> Response {
    desk.held.subscribe().wait_for(|held| !held).await.unwrap();
    if let Some(answer) = &*desk.answer.lock().unwrap() {
        return answer();
    }
    let secrets = [Secret::parse(SECRET).unwrap()];
    #[expect(clippy::disallowed_methods, reason = "a receiver's clock")]
    let now = SystemTime::now();
    match verify(&secrets, &headers, &body, now, TOLERANCE) {
        Err(unverified) => (StatusCode::UNAUTHORIZED, unverified.to_string()).into_response(),
        Ok(_) if &*body == b"unwelcome" => {
            (StatusCode::UNPROCESSABLE_ENTITY, "not\nthat one").into_response()
        }
        Ok(_) => {
            desk.taken.lock().unwrap().push(Taken { headers, body });
            StatusCode::NO_CONTENT.into_response()
        }
    }
}

impl Taken {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// What a reader of CloudEvents makes of it.
    pub(super) fn arrived(&self) -> Arrived {
        const PLAIN: [&str; 8] = [
            "accept",
            "content-length",
            "content-type",
            "host",
            "idempotency-key",
            "webhook-id",
            "webhook-signature",
            "webhook-timestamp",
        ];
        let id = self.header("webhook-id");
        assert_eq!(self.header("idempotency-key"), format!("\"{id}\""));
        assert_eq!(self.header("ce-id"), id);
        let headers = self.headers.iter().filter(|(name, _)| !PLAIN.contains(&name.as_str()));
        let headers: BTreeMap<_, _> = headers
            .map(|(name, value)| {
                let text = String::from_utf8(value.as_bytes().to_vec()).unwrap();
                let attribute = name.as_str().starts_with("ce-");
                (name.to_string(), if attribute { decoded(&text) } else { text })
            })
            .collect();
        let content_type = self.header("content-type").to_owned();
        Arrived::from_headers(headers, "ce-", content_type, self.body.to_vec())
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, tail @ ..] = rest {
        rest = tail;
        if *first == b'%' {
            let digits = std::str::from_utf8(&tail[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &tail[2..];
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}
