//! What the gateway makes of wrong requests on a socket, and what it leaves behind.
//!
//! Each family is a table. A row that fails names itself.

mod bodies;
mod certificates;
mod framing;
mod keys;
mod limits;
mod reload;
mod same;
mod spellings;
mod streams;
mod targets;
pub(crate) mod tls;
mod upstreams;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::Value;

use crate::world::{Answer, Behaviour, Connection, Gateway, Setup, Upstream, ask, post};

/// One protected route for each kind of key, body and limit the tables need.
pub(crate) const ROUTES: &str = r#"
[[route]]
match = "POST /pay"
key = "required"

[[route]]
match = "POST /strict"
key = "strict"

[[route]]
match = "POST /small"
request_max = "1KiB"

[[route]]
match = "POST /raw"
fingerprint.body = "raw"

[[route]]
match = "POST /json"
fingerprint.body = "json"

[[route]]
match = "POST /form"
fingerprint.body = "multipart"

[[route]]
match = "POST /wide/*"
scope = "wide"
"#;

pub(crate) const TOKEN: &str = "a-token-of-operators";

/// A gateway and the API behind it.
pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) gateway: Gateway,
}

impl World {
    pub(crate) async fn start(config: &str) -> Self {
        let upstream = Upstream::start(Behaviour::default()).await;
        let setup = Setup::new(upstream.address).token(TOKEN).config(config);
        Self { gateway: setup.start().await, upstream }
    }

    pub(crate) async fn ask(&self, request: impl AsRef<[u8]>) -> Answer {
        ask(self.gateway.address, request).await.unwrap()
    }

    /// The keys of all operations that were ever claimed.
    pub(crate) async fn claimed(&self) -> Vec<String> {
        self.listed("").await
    }

    /// The keys of all operations in this state.
    pub(crate) async fn in_state(&self, state: &str) -> Vec<String> {
        self.listed(&format!("&state={state}")).await
    }

    async fn listed(&self, filter: &str) -> Vec<String> {
        let head = format!(
            "GET /v1/operations?limit=1000{filter} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer "
        );
        let answer = ask(self.gateway.admin, format!("{head}{TOKEN}\r\n\r\n")).await.unwrap();
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        let operations = page["operations"].as_array().unwrap().iter();
        operations.map(|operation| operation["key"].as_str().unwrap().to_owned()).collect()
    }

    /// Sends what a row says, and looks at the answer, the connection, the ledger and the claims.
    async fn check(&self, row: &Row) {
        let name = row.name;
        let (effects, claims) = (self.upstream.total(), self.claimed().await.len());
        let mut connection = Connection::open(self.gateway.address).await;
        connection.send(&row.sent).await;
        let answer = connection.answer().await;
        assert!(answer.is_some(), "{name}: no answer");
        row.check(&answer.unwrap());
        let mut new = 0;
        if row.expected.closes() {
            assert!(connection.ends().await, "{name}: the connection goes on");
        } else {
            connection.send(post("/pay", &fresh(), "next")).await;
            let next = connection.answer().await;
            let status = next.as_ref().map(|next| (next.status, next.is_replay()));
            assert_eq!(status, Some((201, false)), "{name}: {next:?}");
            new = 1;
        }
        assert_eq!(self.upstream.total(), effects + new, "{name}: effects");
        assert_eq!(self.claimed().await.len(), claims + new, "{name}: claims");
    }
}

/// What is sent, and what must come of it. Nothing may be run or claimed.
struct Row {
    name: &'static str,
    sent: Vec<u8>,
    expected: Expected,
}

#[derive(Debug, Clone, Copy)]
enum Expected {
    /// A problem with this code; the connection serves the next request.
    Refused(u16, &'static str),
    /// A problem with this code; the connection is closed.
    Closed(u16, &'static str),
    /// This status and nothing else, from whoever reads heads; the connection is closed.
    Cut(u16),
}

impl Expected {
    fn closes(self) -> bool {
        match self {
            Self::Refused(..) => false,
            Self::Closed(..) | Self::Cut(_) => true,
        }
    }
}

impl Row {
    fn check(&self, answer: &Answer) {
        let name = self.name;
        let (status, code) = match self.expected {
            Expected::Refused(status, code) | Expected::Closed(status, code) => {
                (status, Some(code))
            }
            Expected::Cut(status) => (status, None),
        };
        let said = (answer.status, answer.code());
        assert_eq!((said.0, said.1.as_deref()), (status, code), "{name}: {answer:?}");
        if code.is_some() {
            let kind = answer.header("content-type");
            assert_eq!(kind, Some("application/problem+json"), "{name}");
        }
    }
}

fn row(name: &'static str, sent: impl Into<Vec<u8>>, expected: Expected) -> Row {
    Row { name, sent: sent.into(), expected }
}

/// A POST of `ten` by `alice` with these header lines, each ended by CR LF.
pub(crate) fn request(path: &str, lines: impl AsRef<[u8]>) -> Vec<u8> {
    head(path, lines, "content-length: 3\r\n", "ten")
}

/// A POST by `alice` with these header lines, this framing and this body.
fn head(path: &str, lines: impl AsRef<[u8]>, framing: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let start = format!("POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: alice\r\n");
    let framing = format!("{framing}\r\n");
    [start.as_bytes(), lines.as_ref(), framing.as_bytes(), body.as_ref()].concat()
}

/// A header line with this key, as it is.
pub(crate) fn key(value: impl AsRef<[u8]>) -> Vec<u8> {
    [b"idempotency-key: ", value.as_ref(), b"\r\n"].concat()
}

/// A key nobody has used.
pub(crate) fn fresh() -> String {
    static KEYS: AtomicU32 = AtomicU32::new(0);
    format!("fresh-{}", KEYS.fetch_add(1, Relaxed))
}
