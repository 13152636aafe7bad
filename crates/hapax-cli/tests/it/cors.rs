//! What a page of another origin can do and read through the gateway, by the rules of a browser.

use std::collections::HashSet;

use crate::world::{Answer, Gateway, Raw, Setup, ask};

/// A page that calls `fetch`, and the browser around it (Fetch standard, sections 3.2 and 4).
struct Page<'a> {
    gateway: &'a Gateway,
    origin: &'static str,
    /// Whether it says `credentials: "include"`.
    cookies: bool,
}

/// What the page asks for.
struct Call<'a> {
    method: &'a str,
    path: &'a str,
    headers: &'a [(&'a str, &'a str)],
}

/// What the page gets to see: a network error, or an answer with the headers it may read.
#[derive(Debug, PartialEq)]
enum Seen {
    NetworkError(&'static str),
    Answer { status: u16, readable: Vec<String>, body: String },
}

impl Page<'_> {
    async fn fetch(&self, call: &Call<'_>) -> Seen {
        let custom: Vec<_> =
            call.headers.iter().map(|(name, _)| *name).filter(needs_leave).collect();
        let is_simple = matches!(call.method, "GET" | "HEAD" | "POST");
        if !is_simple || !custom.is_empty() {
            let mut names = custom.clone();
            names.sort_unstable();
            let question = format!(
                "OPTIONS {} HTTP/1.1\r\nhost: gateway\r\norigin: {}\r\n\
                 access-control-request-method: {}\r\naccess-control-request-headers: {}\r\n\r\n",
                call.path,
                self.origin,
                call.method,
                names.join(",")
            );
            let answer = ask(self.gateway.address, question).await.unwrap();
            if let Err(why) = self.may_send(&answer, call.method, is_simple, &custom) {
                return Seen::NetworkError(why);
            }
        }
        let mut request = format!(
            "{} {} HTTP/1.1\r\nhost: gateway\r\norigin: {}\r\ncontent-length: 3\r\n",
            call.method, call.path, self.origin
        );
        for (name, value) in call.headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let answer = ask(self.gateway.address, request + "\r\nten").await.unwrap();
        if !self.may_read(&answer) {
            return Seen::NetworkError("the answer may not be read");
        }
        let exposed = listed(&answer, "access-control-expose-headers");
        let readable = answer.headers.keys().filter(|name| exposed.contains(name.as_str()));
        let mut readable: Vec<_> = readable.cloned().collect();
        readable.sort_unstable();
        Seen::Answer { status: answer.status, readable, body: answer.text().to_owned() }
    }

    /// The CORS check.
    fn may_read(&self, answer: &Answer) -> bool {
        match answer.header("access-control-allow-origin") {
            Some("*") => !self.cookies,
            Some(origin) if origin == self.origin => {
                !self.cookies || answer.header("access-control-allow-credentials") == Some("true")
            }
            Some(_) | None => false,
        }
    }

    fn may_send(
        &self,
        answer: &Answer,
        method: &str,
        is_simple: bool,
        custom: &[&str],
    ) -> Result<(), &'static str> {
        if !self.may_read(answer) || !(200..300).contains(&answer.status) {
            return Err("the origin may not ask");
        }
        // A star is a star where no cookies are sent, but for `Authorization`.
        let methods = listed(answer, "access-control-allow-methods");
        if !(is_simple || methods.contains(method) || !self.cookies && methods.contains("*")) {
            return Err("the method may not be used");
        }
        let names = listed(answer, "access-control-allow-headers");
        let allowed = |name: &&str| {
            let any = !self.cookies && names.contains("*") && *name != "authorization";
            any || names.contains(*name)
        };
        if custom.iter().all(allowed) { Ok(()) } else { Err("a header may not be sent") }
    }
}

/// Headers that a page may send without asking first.
fn needs_leave(name: &&str) -> bool {
    !matches!(*name, "accept" | "accept-language" | "content-language")
}

fn listed(answer: &Answer, name: &str) -> HashSet<String> {
    let line = answer.header(name).unwrap_or_default();
    line.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

const SHOP: &str = "https://shop.example";
const LISTED: &str =
    "[cors]\norigins = [\"https://shop.example:443\", \"http://localhost:3000\"]\n";
const ROUTE: &str = "[[route]]\nmatch = \"POST, PUT /pay\"\n";
/// What a page of the shop sends.
const KEYED: &[(&str, &str)] = &[
    ("authorization", "Bearer alice"),
    ("content-type", "application/json"),
    ("idempotency-key", "k"),
];

/// An API that says nothing about other origins, or something else than the gateway.
async fn api(says: &'static str) -> Raw {
    Raw::start(move |_| {
        format!("HTTP/1.1 201 Created\r\n{says}content-length: 4\r\n\r\npaid").into_bytes()
    })
    .await
}

fn pay<'a>(headers: &'a [(&'a str, &'a str)]) -> Call<'a> {
    Call { method: "POST", path: "/pay", headers }
}

fn seen(status: u16, readable: &[&str], body: &str) -> Seen {
    let readable = readable.iter().map(|name| (*name).to_owned()).collect();
    Seen::Answer { status, readable, body: body.to_owned() }
}

#[tokio::test]
async fn a_page_of_a_listed_origin_reads_answers_replays_and_refusals() {
    for says in ["", "access-control-allow-origin: https://other.example\r\n"] {
        let api = api(says).await;
        let gateway = Setup::new(api.address).config(&format!("{LISTED}{ROUTE}")).start().await;
        for (origin, method) in [(SHOP, "POST"), ("http://localhost:3000", "PUT")] {
            let page = Page { gateway: &gateway, origin, cookies: false };
            let first = page.fetch(&Call { method, ..pay(KEYED) }).await;
            assert_eq!(first, seen(201, &["idempotency-expires"], "paid"));
            let again = page.fetch(&Call { method, ..pay(KEYED) }).await;
            let marked = ["idempotency-expires", "idempotent-replayed"];
            assert_eq!(again, seen(201, &marked, "paid"));
            let other = Call { method, path: "/pay?other", headers: KEYED };
            let Seen::Answer { status: 422, readable, body } = page.fetch(&other).await else {
                panic!("the refusal could not be read");
            };
            assert_eq!(readable, ["link"]);
            assert!(body.contains("key-reused"), "{body}");
            let Seen::Answer { status: 400, .. } =
                page.fetch(&Call { method, ..pay(&KEYED[..2]) }).await
            else {
                panic!("the refusal could not be read");
            };
            let policy = Call { method: "GET", path: "/.well-known/idempotency", headers: KEYED };
            assert!(matches!(page.fetch(&policy).await, Seen::Answer { status: 200, .. }));
        }
        assert!(api.heads().iter().all(|head| !head.starts_with("OPTIONS")));
    }
}

#[tokio::test]
async fn a_page_of_another_origin_neither_asks_nor_reads() {
    let api = api("").await;
    let gateway = Setup::new(api.address).config(&format!("{LISTED}{ROUTE}")).start().await;
    for origin in
        ["https://evil.example", "http://shop.example", "https://shop.example.evil", "null"]
    {
        let page = Page { gateway: &gateway, origin, cookies: false };
        assert_eq!(page.fetch(&pay(KEYED)).await, Seen::NetworkError("the origin may not ask"));
        let unread = Seen::NetworkError("the answer may not be read");
        assert_eq!(page.fetch(&pay(&[])).await, unread, "{origin}");
    }
    assert!(api.heads().is_empty());
    let cookies = Page { gateway: &gateway, origin: SHOP, cookies: true };
    assert_eq!(cookies.fetch(&pay(KEYED)).await, Seen::NetworkError("the origin may not ask"));
}

#[tokio::test]
async fn cookies_are_read_where_that_is_said_and_anybody_reads_without_them() {
    let api = api("").await;
    let credentials = format!("{LISTED}credentials = true\nmax_age = \"1h\"\n{ROUTE}");
    let gateway = Setup::new(api.address).config(&credentials).start().await;
    let page = Page { gateway: &gateway, origin: SHOP, cookies: true };
    assert!(matches!(page.fetch(&pay(KEYED)).await, Seen::Answer { status: 201, .. }));
    let anybody = format!("[cors]\norigins = \"*\"\n{ROUTE}");
    let gateway = Setup::new(api.address).config(&anybody).start().await;
    let page = Page { gateway: &gateway, origin: "https://any.example", cookies: false };
    assert!(matches!(page.fetch(&pay(KEYED)).await, Seen::Answer { status: 201, .. }));
    let page = Page { cookies: true, ..page };
    assert_eq!(page.fetch(&pay(KEYED)).await, Seen::NetworkError("the origin may not ask"));
}

#[tokio::test]
async fn what_the_gateway_itself_refuses_can_be_read_too() {
    let nobody = crate::world::free_address();
    let config = format!("hosts = [\"gateway\"]\notherwise = \"pass\"\n{LISTED}{ROUTE}");
    let gateway = Setup::new(nobody).config(&config).start().await;
    let page = Page { gateway: &gateway, origin: SHOP, cookies: false };
    let free = Call { method: "POST", path: "/free", headers: &[] };
    let Seen::Answer { status: 503, body, .. } = page.fetch(&free).await else {
        panic!("the refusal could not be read");
    };
    assert!(body.contains("execution-not-started"), "{body}");
    let elsewhere = format!("POST /pay HTTP/1.1\r\nhost: elsewhere\r\norigin: {SHOP}\r\n\r\n");
    let refused = ask(gateway.address, elsewhere).await.unwrap();
    assert_eq!((refused.status, page.may_read(&refused)), (421, true));
}

#[tokio::test]
async fn what_is_not_protected_is_left_to_the_service_and_without_settings_everything_is() {
    let says = "access-control-allow-origin: https://other.example\r\nvary: accept\r\n";
    let api = api(says).await;
    let question = |path: &str| {
        format!(
            "OPTIONS {path} HTTP/1.1\r\nhost: gateway\r\norigin: {SHOP}\r\n\
             access-control-request-method: POST\r\n\r\n"
        )
    };
    let config = format!("otherwise = \"pass\"\n{LISTED}{ROUTE}");
    let configured = Setup::new(api.address).config(&config).start().await;
    let silent = Setup::new(api.address).config(ROUTE).start().await;
    let keyed = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nhost: gateway\r\norigin: {SHOP}\r\nauthorization: alice\r\n\
             idempotency-key: k\r\ncontent-length: 0\r\n\r\n"
        )
    };
    for (gateway, request) in [
        (&configured, question("/free")),
        (&configured, keyed("/free")),
        (&silent, question("/pay")),
        (&silent, keyed("/pay")),
        (&silent, keyed("/pay")),
    ] {
        let answer = ask(gateway.address, &request).await.unwrap();
        let said = ["access-control-allow-origin", "vary", "access-control-expose-headers"]
            .map(|name| answer.header(name));
        let expected = [Some("https://other.example"), Some("accept"), None];
        assert_eq!((answer.status, said), (201, expected), "{request}");
    }
}
