//! Amazon's side, on a loopback port: a queue that checks signatures, STS, and the services that
//! give containers and machines their roles.

use std::{
    collections::{HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, Method, StatusCode, Uri},
    response::{IntoResponse, Response},
};
use hapax_core::time::Timestamp;
use hapax_messaging::{
    sink::{Outage, Sink, Sqs, Verdict},
    sqs::{Credentials, Queue, QueueOptions},
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::signature::{Authorization, SignedRequest, signature_of};
use crate::sink::world::turns;

pub(super) const REGION: &str = "eu-central-1";

/// Who somebody is taken for, and for how long.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) id: &'static str,
    pub(super) lasts: Duration,
}

pub(super) struct Amazon {
    address: SocketAddr,
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    /// Given away one after the other; the last one again and again.
    identities: VecDeque<Identity>,
    /// What STS answers instead.
    sts_refuses: Option<(StatusCode, &'static str)>,
    /// Who asked the queue for something, and with which token.
    callers: Vec<(String, Option<String>)>,
    /// What STS was asked for.
    roles: Vec<HashMap<String, String>>,
    /// The paths that were asked for, without those of the queue.
    paths: Vec<String>,
}

impl Amazon {
    pub(super) async fn start(identities: impl IntoIterator<Item = Identity>) -> Self {
        let desk = Desk { identities: identities.into_iter().collect(), ..Desk::default() };
        let desk = Arc::new(Mutex::new(desk));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&desk));
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, desk }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A sink to a queue here, whose credentials are looked for by these variables.
    pub(super) fn sink(&self, variables: &[(&str, &str)]) -> Sqs {
        let options = QueueOptions {
            region: Some(REGION.to_owned()),
            credentials: Some(Credentials::from_variables(variables.iter().copied())),
            endpoint: None,
        };
        let queue = Queue::new(&self.url("/000000000000/orders.fifo"), options).unwrap();
        Sqs::to(queue).unwrap()
    }

    pub(super) fn sts_refuses(&self, status: StatusCode, code: &'static str) {
        self.desk().sts_refuses = Some((status, code));
    }

    /// Who asked the queue for something since this was called before.
    pub(super) fn callers(&self) -> Vec<String> {
        let callers = std::mem::take(&mut self.desk().callers);
        for (id, token) in &callers {
            let expected = id.starts_with("ASIA").then(|| token_of(id));
            assert_eq!(
                *token, expected,
                "{id}: temporary keys come with their token, others without"
            );
        }
        callers.into_iter().map(|(id, _)| id).collect()
    }

    pub(super) fn roles(&self) -> Vec<HashMap<String, String>> {
        self.desk().roles.clone()
    }

    pub(super) fn paths(&self) -> Vec<String> {
        self.desk().paths.clone()
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap()
    }
}

/// Sends an event: two requests the first time, one from then on.
pub(super) async fn send(sink: &Sqs) -> Result<(), Outage> {
    let verdicts = sink.send(&turns("orders", 1, 1)).await?;
    assert_eq!(verdicts, [Verdict::Taken]);
    Ok(())
}

pub(super) fn secret_of(id: &str) -> String {
    format!("secret/of+{id}")
}

pub(super) fn token_of(id: &str) -> String {
    format!("token//of+{id}==")
}

async fn answer(
    State(desk): State<Arc<Mutex<Desk>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut desk = desk.lock().unwrap();
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let request = SignedRequest { method: &method, path, query, headers: &headers, body: &body };
    if let Some(target) = headers.get("x-amz-target") {
        return queue(&mut desk, target.to_str().unwrap(), &request);
    }
    desk.paths.push(path.to_owned());
    let has = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    match path {
        "/" => sts(&mut desk, &request),
        "/container" if has("authorization", "let me in") => role(&mut desk),
        "/latest/api/token" if method == Method::PUT => "metadata-token".into_response(),
        path if path.starts_with("/latest/")
            && !has("x-aws-ec2-metadata-token", "metadata-token") =>
        {
            StatusCode::UNAUTHORIZED.into_response()
        }
        "/latest/meta-data/iam/security-credentials/" => "worker".into_response(),
        "/latest/meta-data/iam/security-credentials/worker" => role(&mut desk),
        _ => StatusCode::FORBIDDEN.into_response(),
    }
}

fn queue(desk: &mut Desk, target: &str, request: &SignedRequest<'_>) -> Response {
    let caller = checked(request, "sqs");
    let token = request.headers.get("x-amz-security-token");
    desk.callers.push((caller, token.map(|token| token.to_str().unwrap().to_owned())));
    let asked: Value = serde_json::from_slice(request.body).unwrap();
    let answer = match target {
        "AmazonSQS.GetQueueAttributes" => json!({"Attributes": {"MaximumMessageSize": "1048576"}}),
        "AmazonSQS.SendMessageBatch" => {
            let entries = asked["Entries"].as_array().unwrap();
            let taken = entries.iter().map(|entry| json!({"Id": entry["Id"]}));
            json!({"Successful": taken.collect::<Vec<_>>(), "Failed": []})
        }
        other => panic!("{other}"),
    };
    answer.to_string().into_response()
}

/// Who signed a request, after the signature was found to be right.
fn checked(request: &SignedRequest<'_>, service: &str) -> String {
    let found = Authorization::of(request.headers).expect("it is signed");
    let covered: Vec<_> = found.signed_headers.split(';').collect();
    assert!(covered.contains(&"host"), "{covered:?}");
    assert!(found.scope.ends_with(&format!("/{REGION}/{service}/aws4_request")), "{found:?}");
    let secret = secret_of(&found.access_key_id);
    let signature = signature_of(request, &found.signed_headers, &found.scope, &secret);
    assert_eq!(found.signature, signature);
    found.access_key_id
}

fn sts(desk: &mut Desk, request: &SignedRequest<'_>) -> Response {
    let form = std::str::from_utf8(request.body).unwrap();
    let mut asked: HashMap<_, _> = [request.query, form]
        .iter()
        .flat_map(|pairs| pairs.split('&'))
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    let action = asked["Action"].clone();
    if action == "AssumeRole" {
        asked.insert("by".to_owned(), checked(request, "sts"));
    }
    desk.roles.push(asked);
    if let Some((status, code)) = desk.sts_refuses {
        let error = format!("<Error><Code>{code}</Code><Message>not you</Message></Error>");
        return (status, format!("<ErrorResponse>{error}</ErrorResponse>")).into_response();
    }
    let Identity { id, lasts } = next(desk);
    format!(
        "<{action}Response><{action}Result><Credentials><AccessKeyId>{id}</AccessKeyId>\
         <SecretAccessKey>{}</SecretAccessKey><SessionToken>{}</SessionToken>\
         <Expiration>{}</Expiration></Credentials></{action}Result></{action}Response>",
        secret_of(id),
        token_of(id),
        after(lasts),
    )
    .into_response()
}

/// The role of a container or a machine.
fn role(desk: &mut Desk) -> Response {
    let Identity { id, lasts } = next(desk);
    let role = json!({
        "Code": "Success",
        "AccessKeyId": id,
        "SecretAccessKey": secret_of(id),
        "Token": token_of(id),
        "Expiration": after(lasts),
    });
    role.to_string().into_response()
}

fn next(desk: &mut Desk) -> Identity {
    let next = desk.identities.pop_front().expect("somebody to be");
    if desk.identities.is_empty() {
        desk.identities.push_back(next.clone());
    }
    next
}

fn after(span: Duration) -> String {
    #[expect(clippy::disallowed_methods, reason = "Amazon's clock")]
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::ZERO.plus(now + span).to_string()
}

fn decoded(value: &str) -> String {
    let value = value.replace('+', " ");
    percent_encoding::percent_decode_str(&value).decode_utf8().unwrap().into_owned()
}
