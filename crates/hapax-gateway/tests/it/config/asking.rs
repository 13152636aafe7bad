//! Whoever is asked answers over real connections: who a caller is, and whether something happened.

use std::sync::{Arc, Mutex};

use axum::{Router, extract::Request, response::IntoResponse};
use http::{HeaderMap, StatusCode, header::AUTHORIZATION};
use tokio::net::TcpListener;

use super::{
    read, routes,
    world::{World, keyed},
};

/// Serves what `answer` says at an address of its own, and notes the targets it was asked for.
async fn serve<R: IntoResponse>(
    answer: impl Fn(&str, &HeaderMap) -> R + Clone + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().fallback({
        let asked = Arc::clone(&asked);
        move |request: Request| async move {
            let target = format!("{} {}", request.method(), request.uri());
            asked.lock().unwrap().push(target.clone());
            answer(&target, request.headers()).into_response()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}"), asked)
}

#[tokio::test]
async fn somebody_else_may_say_who_asks() {
    let (url, asked) = serve(|_, headers| match headers.get(AUTHORIZATION).unwrap().as_bytes() {
        b"alice" | b"alice again" => (StatusCode::OK, [("x-account", "a")]),
        b"stranger" => (StatusCode::UNAUTHORIZED, [("x-account", "a")]),
        b"banned" => (StatusCode::FORBIDDEN, [("x-account", "a")]),
        b"nameless" => (StatusCode::OK, [("x-other", "a")]),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, [("x-account", "a")]),
    })
    .await;
    let tenant = "[tenant]\nfrom = \"subrequest\"\nheader = \"X-Account\"\nurl = ";
    let world = World::new(routes(&format!("{tenant}\"{url}/whoami?full=1\"")));
    for (credential, status, is_replay) in [
        ("alice", 200, false),
        ("alice again", 200, true),
        ("stranger", 401, false),
        ("banned", 403, false),
        ("nameless", 503, false),
        ("broken", 503, false),
    ] {
        let answer = world.send("10.0.0.1", keyed().header(AUTHORIZATION, credential)).await;
        assert_eq!((answer.0.as_u16(), answer.1), (status, is_replay), "{credential}");
    }
    assert_eq!(asked.lock().unwrap()[0], "GET /whoami?full=1");
    assert_eq!(world.send("10.0.0.1", keyed()).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(asked.lock().unwrap().len(), 6, "without a credential nobody is asked");
}

#[tokio::test]
async fn nothing_runs_while_nobody_can_say_who_asks() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let tenant = "[tenant]\nfrom = \"subrequest\"\nheader = \"X-Account\"\nurl = ";
    let world = World::new(routes(&format!("{tenant}\"http://{address}/\"")));
    let request = keyed().header(AUTHORIZATION, "alice");
    assert_eq!(world.send("10.0.0.1", request).await.0, StatusCode::SERVICE_UNAVAILABLE);
}

#[tokio::test]
async fn the_upstream_is_asked_as_the_caller_whether_it_may_hear_a_replay() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let (url, asked) = serve({
        let heads = Arc::clone(&heads);
        move |_, headers| {
            heads.lock().unwrap().push(headers.clone());
            match headers.get("x-badge").map(|badge| badge.as_bytes()) {
                Some(b"good") => StatusCode::NO_CONTENT,
                Some(b"revoked") => StatusCode::UNAUTHORIZED,
                Some(b"moved") => StatusCode::FOUND,
                _ => StatusCode::FORBIDDEN,
            }
        }
    })
    .await;
    let route = "[[route]]\nmatch = \"POST /a\"\ntenant = \"single\"\nrevalidate = \"/me\"";
    let world = World::new(read(&format!("[upstream]\nurl = \"{url}\"\n{route}")).unwrap());
    let of = |badge: &str| keyed().header("x-badge", badge).header("x-forwarded-for", "10.9.9.9");
    assert_eq!(world.send("10.0.0.1", of("revoked")).await, (StatusCode::OK, false));
    assert!(asked.lock().unwrap().is_empty(), "nothing is asked about what is run");
    for (badge, status, is_replay) in [
        ("good", StatusCode::OK, true),
        ("revoked", StatusCode::UNAUTHORIZED, false),
        ("none", StatusCode::FORBIDDEN, false),
        ("moved", StatusCode::SERVICE_UNAVAILABLE, false),
    ] {
        assert_eq!(world.send("10.0.0.1", of(badge)).await, (status, is_replay), "{badge}");
    }
    assert_eq!(*asked.lock().unwrap(), ["GET /me"; 4]);
    let head = &heads.lock().unwrap()[0];
    assert_eq!(head["x-original-method"], "POST");
    assert_eq!(head["x-original-uri"], "/a");
    assert_eq!(head["x-forwarded-for"], "10.9.9.9, 10.0.0.1");
    assert!(!head.contains_key("idempotency-key"));
}

#[tokio::test]
async fn no_replay_is_heard_while_the_upstream_cannot_be_asked() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let route = "[[route]]\nmatch = \"POST /a\"\ntenant = \"single\"\nrevalidate = \"/me\"";
    let config = read(&format!("[upstream]\nurl = \"http://{address}\"\n{route}")).unwrap();
    let world = World::new(config);
    assert_eq!(world.send("10.0.0.1", keyed()).await.0, StatusCode::OK);
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::SERVICE_UNAVAILABLE, false));
}

#[tokio::test]
async fn the_upstream_may_say_whether_it_happened() {
    let (url, asked) = serve(|target, _| match target {
        "GET /a/by-key/k-1" => StatusCode::OK,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    })
    .await;
    let route = "[[route]]\nmatch = \"POST /a\"\ntenant = \"single\"\nrecovery = \"probe\"";
    let probe = "probe = \"{path}/by-key/{key}\"\nprobe_status = 202";
    let config = read(&format!("[upstream]\nurl = \"{url}\"\n{route}\n{probe}")).unwrap();
    let world = World::that_breaks(config);
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::ACCEPTED, false));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::ACCEPTED, true));
    assert_eq!(*asked.lock().unwrap(), ["GET /a/by-key/k-1"]);
}
