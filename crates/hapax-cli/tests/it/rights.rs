//! What was right when it was stored may be wrong when it is told, and what is stored may be read.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU16, Ordering::Relaxed},
    },
};

use hapax::{Key, Operation, Scope, tower::TenantKind};
use jsonwebtoken::Algorithm;

use crate::{
    leaks::{SECRET, pay, token},
    wire::World,
    world::{Raw, Setup, ask, until},
};

const HOME: &str = "/.well-known/idempotency/operations";

fn look(path: &str, lines: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\n{lines}\r\n")
}

/// The answer of the API to whoever may pay.
const RECEIPT: &str = "HTTP/1.1 201 x\r\ncontent-length: 14\r\n\r\nsecret receipt";

/// An API that says with this status, under `/me`, whether its caller still may.
async fn api(status: &Arc<AtomicU16>) -> Raw {
    let status = Arc::clone(status);
    Raw::start(move |head| {
        if !head.starts_with("GET /me ") {
            return RECEIPT.into();
        }
        let status = status.load(Relaxed);
        format!("HTTP/1.1 {status} x\r\ncontent-length: 7\r\n\r\nrevoked").into_bytes()
    })
    .await
}

#[tokio::test]
async fn a_credential_that_was_revoked_hears_no_replay_where_the_upstream_is_asked() {
    let status = Arc::new(AtomicU16::new(200));
    let api = api(&status).await;
    let config = "[[route]]\nmatch = \"POST /pay\"\nrevalidate = \"GET /me\"\n";
    let gateway = Setup::new(api.address).config(config).start().await;
    let alice = pay("authorization: alice\r\n", "used");
    assert_eq!(ask(gateway.address, &alice).await.unwrap().text(), "secret receipt");
    let replay = ask(gateway.address, &alice).await.unwrap();
    assert_eq!((replay.is_replay(), replay.text()), (true, "secret receipt"));
    let question = api.heads().pop().unwrap();
    assert!(question.contains("authorization: alice\r\n"), "{question}");
    for (said, heard) in [(401, 401), (403, 403), (404, 503), (302, 503), (500, 503)] {
        status.store(said, Relaxed);
        for request in [alice.clone(), alice.replace("\r\n\r\nten", "\r\n\r\ntwo")] {
            let answer = ask(gateway.address, &request).await.unwrap();
            assert_eq!((answer.status, answer.is_replay()), (heard, false), "{said}");
            assert!(!answer.text().contains("receipt"), "{said}");
            assert_eq!(answer.text() == "revoked", heard != 503, "{said}: {}", answer.text());
        }
    }
    drop(api);
    let answer = ask(gateway.address, &alice).await.unwrap();
    assert_eq!((answer.status, answer.code().as_deref()), (503, Some("caller-unverifiable")));
}

#[tokio::test]
async fn an_address_cannot_be_made_up_and_a_namesake_of_another_kind_finds_nothing() {
    let world = World::start(&format!(
        "[tenant]\nfrom = \"jwt\"\nsecret = {SECRET:?}\n\
         [[route]]\nmatch = \"POST /pay\"\nin_flight = \"accept\"\nkeep_credentials = true\n\
         [[route]]\nmatch = \"POST /open\"\ntenant = \"single\"\n"
    ))
    .await;
    let everybody = token(Algorithm::HS256, SECRET, "everybody", 4_000_000_000);
    let accepted = world.ask(pay(&everybody, "order-17")).await;
    let address = accepted.header("location").unwrap().to_owned();
    until("it to be run", async || world.ask(look(&address, &everybody)).await.status == 201).await;
    let stranger = world.ask(look(&address, "")).await;
    assert_eq!((stranger.status, stranger.code().as_deref()), (404, Some("operation-unknown")));

    assert_eq!(world.ask(pay("", "order-17").replace("/pay", "/open")).await.status, 201);
    let (tenant, scope) = (TenantKind::Single.tenant("everybody"), Scope::parse("POST /open"));
    let key = Key::parse("order-17").unwrap();
    let id = Operation::new(tenant.unwrap(), scope.unwrap(), key).id();
    for made_up in [format!("{id}"), format!("{id}-{id}"), format!("{id}-")] {
        for lines in ["", everybody.as_str()] {
            let answer = world.ask(look(&format!("{HOME}/{made_up}"), lines)).await;
            assert_eq!(answer.status, 404, "{made_up}");
        }
    }
}

/// Every byte in the files of a store.
fn stored(directory: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for file in fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.to_string_lossy().contains("hapax.db") {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{}", path.display());
            all.extend(fs::read(&path).unwrap());
        }
    }
    all
}

#[tokio::test]
async fn no_secret_of_a_request_is_written_to_disk_unless_its_route_says_so() {
    let secrets = [
        "authorization",
        "cookie",
        "x-api-key",
        "x-amz-security-token",
        "x-goog-iap-jwt-assertion",
        "x-auth-token",
        "x-badge",
    ];
    let lines: String = secrets.iter().map(|name| format!("{name}: of-{name}\r\n")).collect();
    let lines = lines + "x-plain: not-secret-at-all\r\n";
    for keep in [false, true] {
        let world = World::start(&format!(
            "[[route]]\nmatch = \"POST /pay\"\nrecovery = \"resend\"\nkeep_credentials = {keep}\n\
             secret_headers = [\"X-Badge\"]\n"
        ))
        .await;
        assert_eq!(world.ask(pay(&lines, "k-1")).await.status, 201);
        let path = world.gateway.store.strip_prefix("sqlite:").unwrap();
        let stored = stored(Path::new(path).parent().unwrap());
        let holds = |text: &str| stored.windows(text.len()).any(|part| part == text.as_bytes());
        assert!(holds("not-secret-at-all"), "requests are kept on this route");
        for name in secrets {
            assert_eq!(holds(&format!("of-{name}")), keep, "{name}");
        }
    }
}
