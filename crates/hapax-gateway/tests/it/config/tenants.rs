//! A tenant is never taken from the client's word alone.

use std::path::Path;

use hapax_gateway::{
    Config,
    config::{ConfigError, Overrides},
};
use http::{Request, StatusCode};

use super::{
    routes,
    world::{World, keyed},
};

const BY_HEADER: &str = "[tenant]\nfrom = \"header\"\nheader = \"X-Account\"\n\
                         trusted_proxies = [\"10.0.0.0/8\", \"::1\"]";

#[tokio::test]
async fn a_header_names_the_tenant_only_if_a_trusted_proxy_wrote_it() {
    let world = World::new(routes(BY_HEADER));
    let of = |account: &str| keyed().header("x-account", account);
    assert_eq!(world.send("10.1.2.3", of("a")).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.9.9.9", of("a")).await, (StatusCode::OK, true));
    assert_eq!(world.send("10.9.9.9", of("b")).await, (StatusCode::OK, false));
    assert_eq!(world.send("[::1]", of("a")).await, (StatusCode::OK, true));
    assert_eq!(world.send("[::ffff:10.1.1.1]", of("a")).await, (StatusCode::OK, true));
    for stranger in ["11.0.0.1", "127.0.0.1", "[fe80::1]"] {
        assert_eq!(world.send(stranger, of("a")).await, (StatusCode::UNAUTHORIZED, false));
    }
}

#[tokio::test]
async fn a_header_that_is_missing_or_repeated_names_nobody() {
    let world = World::new(routes(BY_HEADER));
    let twice = keyed().header("x-account", "a").header("x-account", "b");
    for request in [keyed(), twice, keyed().header("x-account", "")] {
        assert_eq!(world.send("10.0.0.1", request).await, (StatusCode::UNAUTHORIZED, false));
    }
}

#[tokio::test]
async fn without_a_credential_only_requests_with_a_key_are_refused() {
    let world = World::new(routes(""));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::UNAUTHORIZED, false));
    assert_eq!(world.send("10.0.0.1", Request::post("/a")).await, (StatusCode::OK, false));
}

#[tokio::test]
async fn a_route_may_find_its_tenant_in_another_way() {
    let world = World::new(routes("[[route]]\nmatch = \"POST /a\"\ntenant = \"single\""));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::OK, false));
    assert_eq!(world.send("10.0.0.1", keyed()).await, (StatusCode::OK, true));
    let elsewhere = Request::post("/b").header("idempotency-key", "k-1");
    assert_eq!(world.send("10.0.0.1", elsewhere).await, (StatusCode::UNAUTHORIZED, false));
}

/// What a gateway that is started with `--tenant` takes for its callers.
fn flagged(tenant: &str) -> Result<Config, ConfigError> {
    let overrides = Overrides {
        upstream: Some("http://127.0.0.1:3000".to_owned()),
        tenant: Some(tenant.to_owned()),
        ..Overrides::default()
    };
    Config::parse(Path::new("gateway.toml"), "tenant = \"credential\"", &overrides)
}

#[tokio::test]
async fn the_command_line_says_who_callers_are_and_counts_for_more_than_the_file() {
    let keyed = || keyed();
    for (tenant, known, unknown) in [
        ("credential", keyed().header("authorization", "a"), Some(keyed())),
        ("header:X-API-Key", keyed().header("x-api-key", "a"), Some(keyed())),
        ("cookie:session", keyed().header("cookie", "session=a"), Some(keyed())),
        ("single", keyed(), None),
        ("shop", keyed(), None),
    ] {
        let config = flagged(tenant).unwrap();
        let is_shared = unknown.is_none();
        assert_eq!(config.callers.contains("share all keys"), is_shared, "{}", config.callers);
        assert_eq!(config.callers.contains("401 credential-missing"), !is_shared);
        assert!(config.callers.contains("as --tenant says"), "{}", config.callers);
        assert!(!config.notes.iter().any(|note| note.contains("no tenant is configured")));
        let world = World::new(config);
        assert_eq!(world.send("10.0.0.1", known).await, (StatusCode::OK, false), "{tenant}");
        if let Some(unknown) = unknown {
            let refused = (StatusCode::UNAUTHORIZED, false);
            assert_eq!(world.send("10.0.0.1", unknown).await, refused, "{tenant}");
        }
    }
    let usual = routes("").callers;
    assert!(usual.contains("their Authorization header, as nothing else is said"), "{usual}");
}

#[test]
fn a_flag_that_names_no_caller_is_refused() {
    for (tenant, part) in [
        ("", "cannot be \"\""),
        ("jwt", "write `[tenant]` and `from = \"jwt\"` in a file"),
        ("certificate", "write `[tenant]`"),
        ("header", "write \"header:NAME\" instead"),
        ("cookie:", "write the name of a cookie"),
        ("header:X Key", "write the name of a header"),
        ("heeder:X-Key", "\"header:X-API-Key\""),
        ("sch\u{fc}ssel", "visible ASCII"),
    ] {
        let told = flagged(tenant).unwrap_err().to_string();
        assert!(told.starts_with("--tenant: it ") && told.contains(part), "{tenant}: {told}");
    }
}

#[tokio::test]
async fn cookies_may_come_in_several_lines_and_one_of_them_once() {
    let world = World::new(routes("[tenant]\nfrom = \"cookie\"\nname = \"sid\""));
    let send = async |lines: &[&str]| {
        let request = lines.iter().fold(keyed(), |request, line| request.header("cookie", *line));
        world.send("10.0.0.1", request).await
    };
    assert_eq!(send(&["a=1", "sid=alice"]).await, (StatusCode::OK, false));
    assert_eq!(send(&["SID=x;  sid = alice ; asid=y"]).await, (StatusCode::OK, true));
    let refused = (StatusCode::UNAUTHORIZED, false);
    for lines in
        [&["sid=alice", "sid=alice"][..], &["sid=alice; sid=bob"], &["sid="], &["sid"], &["xsid=a"]]
    {
        assert_eq!(send(lines).await, refused, "{lines:?}");
    }
}

#[tokio::test]
async fn the_same_secret_shown_elsewhere_is_another_caller() {
    let by_route = |path: &str, tenant: &str| {
        format!("[[route]]\nmatch = \"POST {path}\"\nscope = \"shared\"\ntenant = {{ {tenant} }}\n")
    };
    let world = World::new(routes(
        &[
            by_route("/a", "from = \"header\", name = \"X-One\""),
            by_route("/b", "from = \"header\", name = \"X-Two\""),
            by_route("/c", "from = \"cookie\", name = \"x-one\""),
        ]
        .concat(),
    ));
    for path in ["/a", "/b", "/c"] {
        let request = Request::post(path).header("idempotency-key", "k-1");
        let request = request.header("x-one", "s").header("x-two", "s").header("cookie", "x-one=s");
        assert_eq!(world.send("10.0.0.1", request).await, (StatusCode::OK, false), "{path}");
    }
}
