//! A provider that says whatever a test wants it to: it plays the attacker. What the real one says is tried with
//! the program.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::UNIX_EPOCH,
};

use axum::{
    Json, Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Request, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hapax_engine::wall_clock;
use hapax_gateway::{
    admin::{AdminAccess, AdminSecret},
    config::AdminOidc,
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::admin::world::{Answer, HOST, TOKEN, World};

pub(super) const CLIENT: &str = "hapax";
/// The secret the provider knows the gateway by.
pub(super) const SECRET: &str = "a secret & more";
pub(super) const START: &str = "/session/oidc";
const CALLBACK: &str = "/session/oidc/callback";

/// A provider on a free loopback port. It is away when it is dropped, with its runtime.
#[derive(Clone)]
pub(super) struct Provider {
    pub(super) issuer: String,
    pub(super) script: Arc<Mutex<Script>>,
    pub(super) keys_asked: Arc<AtomicUsize>,
}

/// What it says.
#[derive(Default)]
pub(super) struct Script {
    /// What it answers instead of its configuration.
    pub(super) configuration: Option<(StatusCode, String)>,
    /// What it changes in its configuration.
    pub(super) changed: Value,
    pub(super) keys: Vec<Value>,
    pub(super) token: String,
    /// Whether its token endpoint is there; it is, if nothing is said.
    pub(super) gives_tokens: Option<bool>,
    /// What it was shown for a token: the header, and the form.
    pub(super) shown: Vec<(Option<String>, HashMap<String, String>)>,
}

/// A key to sign with, and what is published of it.
pub(super) struct SigningKey {
    pub(super) id: &'static str,
    pub(super) pair: rcgen::KeyPair,
}

impl SigningKey {
    pub(super) fn new(id: &'static str) -> Self {
        Self { id, pair: rcgen::KeyPair::generate().unwrap() }
    }

    pub(super) fn encoding(&self) -> EncodingKey {
        EncodingKey::from_ec_pem(self.pair.serialize_pem().as_bytes()).unwrap()
    }

    pub(super) fn published(&self) -> Value {
        let jwk = Jwk::from_encoding_key(&self.encoding(), Algorithm::ES256).unwrap();
        let mut jwk = serde_json::to_value(jwk).unwrap();
        jwk["kid"] = json!(self.id);
        jwk["use"] = json!("sig");
        jwk
    }

    /// A token of these claims.
    pub(super) fn signs(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.to_owned()), ..Header::new(Algorithm::ES256) };
        encode(&header, claims, &self.encoding()).unwrap()
    }
}

impl Provider {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let provider = Self { issuer, script: Arc::default(), keys_asked: Arc::default() };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(configuration))
            .route("/jwks", get(keys))
            .route("/token", post(token));
        let router = router.with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        provider
    }

    pub(super) fn settings(&self) -> AdminOidc {
        AdminOidc {
            issuer: self.issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Some(SECRET.to_owned().into()),
            dashboard: None,
            scopes: vec!["openid".to_owned(), "email".to_owned()],
            claim: "groups".to_owned(),
            operate: vec!["oncall".to_owned()],
            read: vec!["staff".to_owned()],
            person: "email".to_owned(),
            called: "Example".to_owned(),
            ca: None,
        }
    }

    pub(super) fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    /// What it honestly says of somebody in these groups.
    pub(super) fn claims(&self, login: &Login, groups: &Value) -> Value {
        let now = now();
        json!({
            "iss": self.issuer, "aud": CLIENT, "sub": "7", "nonce": login.nonce, "groups": groups,
            "email": "ada@example.com", "email_verified": true, "iat": now, "exp": now + 300,
        })
    }
}

pub(super) fn now() -> u64 {
    wall_clock().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

async fn configuration(State(provider): State<Provider>) -> Response {
    let script = provider.script.lock().unwrap();
    if let Some((status, text)) = &script.configuration {
        let to = [("location", format!("{}/jwks", provider.issuer))];
        return (*status, to, text.clone()).into_response();
    }
    let issuer = &provider.issuer;
    let mut document = json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{issuer}/authorize?tenant=1"),
        "token_endpoint": format!("{issuer}/token"),
        "jwks_uri": format!("{issuer}/jwks"),
    });
    if let Some(changed) = script.changed.as_object() {
        document.as_object_mut().unwrap().extend(changed.clone());
    }
    Json(document).into_response()
}

async fn keys(State(provider): State<Provider>) -> Json<Value> {
    provider.keys_asked.fetch_add(1, Relaxed);
    Json(json!({ "keys": provider.script.lock().unwrap().keys }))
}

async fn token(State(provider): State<Provider>, headers: HeaderMap, form: String) -> Response {
    let form = pairs(&form);
    let mut script = provider.script.lock().unwrap();
    if script.gives_tokens == Some(false) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    let header = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    let is_known = form["code"] == "c";
    script.shown.push((header, form));
    if is_known {
        Json(json!({ "id_token": script.token, "access_token": "a" })).into_response()
    } else {
        (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response()
    }
}

/// What a query or a form says.
fn pairs(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').map(|pair| pair.split_once('=').unwrap());
    let decoded = |text| percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into();
    pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect()
}

/// A gateway whose people sign in by this provider, or by the token.
pub(super) fn world(settings: AdminOidc) -> World {
    World::with_access(AdminAccess {
        operate: AdminSecret::new(TOKEN),
        address: HOST.parse().unwrap(),
        oidc: Some(settings),
        ..AdminAccess::default()
    })
}

/// A sign-in that was begun in a browser.
#[derive(Debug, Clone)]
pub(super) struct Login {
    /// The cookie it was given, with its attributes.
    pub(super) set_cookie: String,
    /// What the provider was told.
    pub(super) asked: HashMap<String, String>,
    pub(super) nonce: String,
}

impl Login {
    pub(super) fn cookie(&self) -> &str {
        self.set_cookie.split(';').next().unwrap()
    }

    /// How the provider sends the browser back.
    pub(super) fn back(&self, code: &str) -> String {
        format!("{CALLBACK}?code={code}&state={}&session_state=1", self.asked["state"])
    }
}

/// Follows the link on the page.
pub(super) async fn start(world: &World) -> Answer {
    world.send(World::by_page("GET", START, "").body(Body::empty()).unwrap()).await
}

/// The same, as far as the provider.
pub(super) async fn begun(world: &World, issuer: &str) -> Login {
    let answer = start(world).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
    let page = answer.header("location").strip_prefix(issuer).unwrap();
    let query = page.strip_prefix("/authorize?tenant=1&").unwrap();
    let asked = pairs(query);
    let nonce = asked["nonce"].clone();
    Login { set_cookie: answer.header("set-cookie").to_owned(), asked, nonce }
}

/// Comes back from the provider's site with this cookie.
pub(super) async fn come_back(world: &World, path: &str, cookie: &str) -> Answer {
    let request = Request::get(path).header("host", HOST).header("sec-fetch-site", "cross-site");
    world.send(request.header("cookie", cookie).body(Body::empty()).unwrap()).await
}

/// The session that was begun, if one was.
pub(super) fn session_of(answer: &Answer) -> Option<String> {
    let cookies = answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    let mut sessions = cookies.filter(|cookie| cookie.starts_with("hapax-session-"));
    sessions.next().map(str::to_owned)
}

/// Signs in as somebody in these groups; the answer to the browser that comes back.
pub(super) async fn signed_in(
    world: &World,
    provider: &Provider,
    key: &SigningKey,
    groups: &Value,
) -> Answer {
    let login = begun(world, &provider.issuer).await;
    let token = key.signs(&provider.claims(&login, groups));
    provider.script(|script| script.token = token);
    come_back(world, &login.back("c"), login.cookie()).await
}

/// A provider with one key, and a gateway that believes it.
pub(super) async fn set_up() -> (Provider, SigningKey, World) {
    let (provider, key) = (Provider::start().await, SigningKey::new("one"));
    provider.script(|script| script.keys = vec![key.published()]);
    let world = world(provider.settings());
    (provider, key, world)
}
