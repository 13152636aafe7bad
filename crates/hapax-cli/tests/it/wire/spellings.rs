//! Other spellings of a protected request: of its path, its host, its headers.

use super::{ROUTES, World, fresh, key, request};
use crate::{
    http2,
    http2::frames::{END_STREAM, Fate, Frames, head},
    world::{Answer, Behaviour, Gateway, Setup, Upstream, ask, until},
};

fn refused(answer: &Answer) -> (u16, Option<String>) {
    (answer.status, answer.code())
}

fn unclear() -> (u16, Option<String>) {
    (400, Some("target-unclear".to_owned()))
}

/// What the upstream was asked for, as `POST /path`.
fn targets(upstream: &Upstream) -> Vec<String> {
    let heads = upstream.heads();
    heads.iter().map(|head| head.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect()
}

#[tokio::test]
async fn no_spelling_of_a_path_gets_round_its_route() {
    for otherwise in ["pass", "protect", "refuse"] {
        let world = World::start(&format!("otherwise = \"{otherwise}\"\n{ROUTES}")).await;
        let mut newer = http2::Client::open(world.gateway.address).await;
        for path in [
            "/PAY",
            "/pay/",
            "//pay",
            "/pay//",
            "/pay%2f",
            "/%2Fpay",
            "/pay;x=1",
            "/pay%3bx=1",
            "/pay.json",
            "/pay%20",
            "/pay%00",
            "/pay%0A",
            "/%2570ay",
            "/pay%5c",
            "/pay%5C",
            "/pay%zz",
            "/./pay",
            "/x/../pay",
            "/%2e/pay",
            "/x/%2e%2E/pay",
            "/x/..;/pay",
            "/x/..%2Fpay",
            "/Wide/x",
            "//wide/x",
            "/strict/",
            "/STRICT?a=1",
        ] {
            for lines in [Vec::new(), key(fresh())] {
                let answer = world.ask(request(path, lines)).await;
                assert_eq!(refused(&answer), unclear(), "{otherwise} {path}");
            }
            let answer = newer.ask(http2::post(path), "ten").await.unwrap();
            assert_eq!(refused(&answer), unclear(), "{otherwise} {path} over HTTP/2");
        }
        let answer = world.ask(request("/%70ay", "")).await;
        assert_eq!(refused(&answer), (400, Some("key-missing".to_owned())));
        assert_eq!((world.upstream.heads().len(), world.claimed().await.len()), (0, 0));
        let answer = world.ask(request("/elsewhere", "")).await;
        let expected = if otherwise == "refuse" { 404 } else { 201 };
        assert_eq!(answer.status, expected, "{otherwise}");
    }
}

#[tokio::test]
async fn one_path_is_one_operation_and_the_upstream_sees_it_spelled_once() {
    let later = "respond_async = true\nkeep_credentials = true";
    let world =
        World::start(&format!("{ROUTES}\n[[route]]\nmatch = \"POST /later\"\n{later}")).await;
    let spelled = |path: &str| request(path, key("k"));
    assert!(!world.ask(spelled("/%70a%79?q=%70")).await.is_replay());
    assert!(world.ask(spelled("/pay?q=%70")).await.is_replay());
    let later = format!("idempotency-key: {}\r\nprefer: respond-async\r\n", fresh());
    assert_eq!(world.ask(request("/%6Cater", later)).await.status, 202);
    until("what was accepted to run", async || world.upstream.heads().len() == 2).await;
    assert_eq!(targets(&world.upstream), ["POST /pay?q=%70", "POST /later"]);
}

/// `:status` with this value, as the first bytes of a head.
const BAD_REQUEST: u8 = 0x80 | 12;

#[tokio::test]
async fn a_target_over_http2_that_is_no_path_is_refused_or_made_one() {
    let world = World::start(ROUTES).await;
    let (scheme, host) = ((":scheme", "http"), (":authority", "gateway"));
    for (method, path) in [("post", "/pay"), ("Post", "/pay"), ("POST", "*"), ("POST", "/x/../pay")]
    {
        let mut frames = Frames::open(world.gateway.address).await;
        let fields = [(":method", method), (":path", path), scheme, host];
        frames.send(&head(1, END_STREAM, &fields)).await;
        assert_eq!(frames.fate(1).await, Fate::Answered(BAD_REQUEST), "{method} {path}");
    }
    assert_eq!(world.upstream.heads().len(), 0);
    for method in ["POST", "GET"] {
        let mut frames = Frames::open(world.gateway.address).await;
        let fields = [(":method", method), (":path", "?q=1"), scheme, host];
        frames.send(&head(1, END_STREAM, &fields)).await;
        frames.fate(1).await;
    }
    assert_eq!(targets(&world.upstream), ["POST /?q=1", "GET /?q=1"]);
}

#[tokio::test]
async fn no_path_leaves_the_prefix_of_the_upstream() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let url = format!("http://{}/api", upstream.address);
    let gateway = Setup::new(upstream.address).upstream(url).start().await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
    for path in
        ["/../admin", "/a/../../admin", "/%2e%2e/admin", "/..%2fadmin", "/..;/admin", "/..\\admin"]
    {
        let answer = ask(gateway.address, get(path)).await.unwrap();
        assert_eq!(refused(&answer), unclear(), "{path}");
        let answer = ask(gateway.address, request(path, "")).await.unwrap();
        assert_eq!(refused(&answer), unclear(), "{path}");
        let answer = ask(gateway.address, request(path, key(fresh()))).await.unwrap();
        assert_eq!(refused(&answer), unclear(), "{path}");
    }
    let everything = "OPTIONS * HTTP/1.1\r\nhost: a\r\n\r\n";
    assert_eq!(refused(&ask(gateway.address, everything).await.unwrap()), unclear());
    assert_eq!(upstream.heads().len(), 0);
    ask(gateway.address, get("/a..b/c?d")).await.unwrap();
    assert_eq!(targets(&upstream), ["GET /api/a..b/c?d"]);
}

#[tokio::test]
async fn a_key_is_forwarded_in_one_spelling() {
    let world = World::start(&format!(
        "{ROUTES}\n[[route]]\nmatch = \"POST /bare\"\nforward_key = \"bare\""
    ))
    .await;
    for (path, sent, told) in [
        ("/pay", "abc", "\"\\\"abc\\\"\""),
        ("/pay", "\"abd\"", "\"\\\"abd\\\"\""),
        ("/bare", "abc", "\"abc\""),
        ("/bare", "\"abd\"", "\"abd\""),
    ] {
        assert_eq!(world.ask(request(path, key(sent))).await.status, 201);
        let head = world.upstream.heads().pop().unwrap();
        assert!(head.contains(&format!("\"idempotency-key\": {told}")), "{sent}: {head}");
    }
}

#[tokio::test]
async fn nobody_can_speak_in_the_name_of_the_gateway_by_another_spelling() {
    let world = World::start(ROUTES).await;
    let forged = "Hapax_Fence: forged\r\nHapax_Unprotected: forged\r\nIdempotency_Key: forged\r\n\
                  X_Forwarded_For: forged\r\nX-Forwarded_Proto: forged\r\nX_Forwarded_Host: forged\r\n\
                  Content_Length: forged\r\nTransfer_Encoding: forged\r\nX_Own: kept\r\n";
    for lines in [forged.as_bytes().to_vec(), [forged.as_bytes(), &key(fresh())].concat()] {
        let path = if lines.len() == forged.len() { "/elsewhere" } else { "/pay" };
        assert_eq!(world.ask(request(path, lines)).await.status, 201);
        let head = world.upstream.heads().pop().unwrap();
        assert!(!head.contains("forged") && head.contains("\"x_own\": \"kept\""), "{head}");
    }
}

#[tokio::test]
async fn a_client_cannot_have_removed_what_others_say_about_it() {
    let world = World::start(ROUTES).await;
    for lines in [Vec::new(), key(fresh())] {
        let named = "connection: x-forwarded-for, Authorization, x-own\r\nx-forwarded-for: 10.0.0.7\r\n\
                     x-own: gone\r\n";
        let path = if lines.is_empty() { "/elsewhere" } else { "/pay" };
        let lines = [named.as_bytes(), &lines].concat();
        assert_eq!(world.ask(request(path, lines)).await.status, 201);
        let head = world.upstream.heads().pop().unwrap();
        assert!(head.contains("\"10.0.0.7, 127.0.0.1\"") && head.contains("\"alice\""), "{head}");
        assert!(!head.contains("gone"), "{head}");
    }
}

async fn keeping_hosts(upstream: &Upstream, protocol: &str) -> Gateway {
    let config = format!("[upstream]\nkeep_host = true\nprotocol = \"{protocol}\"\n{ROUTES}");
    Setup::new(upstream.address).config(&config).start().await
}

#[tokio::test]
async fn each_host_the_upstream_sees_has_keys_of_its_own() {
    for protocol in ["http1", "http2"] {
        let upstream = Upstream::start(Behaviour::default()).await;
        let gateway = keeping_hosts(&upstream, protocol).await;
        for (path, effects) in [("/pay", 2), ("/wide/x", 4)] {
            let to = |host: &str| {
                let request = String::from_utf8(request(path, key("order-17"))).unwrap();
                request.replace("host: gateway", &format!("host: {host}"))
            };
            for host in ["shop-a.example", "shop-b.example"] {
                let first = ask(gateway.address, to(host)).await.unwrap();
                assert_eq!((first.status, first.is_replay()), (201, false), "{protocol} {host}");
                let again = ask(gateway.address, to(&host.to_ascii_uppercase())).await.unwrap();
                assert_eq!((&again.body, again.is_replay()), (&first.body, true), "{protocol}");
                let head = upstream.heads().pop().unwrap();
                assert!(head.contains(host), "{protocol}: {head}");
            }
            assert_eq!(upstream.total(), effects, "{protocol}");
        }
    }
}

#[tokio::test]
async fn the_host_an_operation_was_for_is_the_one_that_is_asked_about_it() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[upstream]\nkeep_host = true\n[[route]]\nmatch = \"POST /pay\"\ntimeout = \"1s\"\n\
                  recovery = \"probe\"\nprobe = \"/by-key/{key}\"";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    upstream.silence(true);
    let request = String::from_utf8(request("/pay", key("k"))).unwrap();
    let request = request.replace("host: gateway", "host: shop-a.example");
    ask(gateway.address, request).await.unwrap();
    let asked =
        async || upstream.heads().into_iter().find(|head| head.starts_with("GET /by-key/k"));
    until("the upstream to be asked", async || asked().await.is_some()).await;
    let head = asked().await.unwrap();
    assert!(head.contains("\"host\": \"shop-a.example\""), "{head}");
    assert_eq!(upstream.effects("k"), 1);
}

#[tokio::test]
async fn the_header_that_names_the_tenant_cannot_be_taken_off_on_its_way() {
    let config = format!(
        "[tenant]\nfrom = \"header\"\nheader = \"X-Account\"\ntrusted_proxies = [\"127.0.0.1\"]\n{ROUTES}"
    );
    let world = World::start(&config).await;
    let account = [b"x-account: 7\r\n", &key(fresh())[..]].concat();
    let stripped = [b"connection: x-account\r\n", &account[..]].concat();
    let answer = world.ask(request("/pay", stripped)).await;
    assert_eq!(refused(&answer), (401, Some("credential-missing".to_owned())));
    assert_eq!(world.ask(request("/pay", account)).await.status, 201);
}
