//! What is written is what is in force.

use std::time::Duration;

use hapax_gateway::{
    Config,
    config::{ConfigError, ConfigSource, Overrides, Protocol, RouteMode, describe},
};
use hapax_tower::published_policy;
use serde_json::{Value, json};

use super::{read, routes};

fn upstream(url: &str) -> Overrides {
    Overrides { upstream: Some(url.to_owned()), ..Overrides::default() }
}

#[test]
fn an_upstream_is_all_that_has_to_be_told() {
    let source = ConfigSource { file: None, overrides: upstream("http://127.0.0.1:3000") };
    let config = Config::load(&source).unwrap();
    assert_eq!(config.listen, "127.0.0.1:8080".parse().unwrap());
    assert_eq!(config.admin, Some("127.0.0.1:8081".parse().unwrap()));
    assert_eq!(config.store, "sqlite:hapax.db");
    assert_eq!(config.upstream.url, "http://127.0.0.1:3000");
    assert_eq!(config.upstream.idle, Duration::from_secs(3));
    assert_eq!(config.upstream.connections_max, 1024);
    assert_eq!(config.upstream.long_lived_max, 1000);
    assert_eq!(config.upstream.silence_max, Duration::from_secs(3600));
    assert_eq!(config.upstream.protocol, Protocol::Automatic);
    assert_eq!(config.limits.connections_max, 10_000);
    assert_eq!(config.limits.buffered_bytes_max, 256 << 20);
    assert_eq!(config.drain, Duration::from_secs(30));
    assert_eq!(config.cache_bytes_max, 64 << 20);
    let policy = published_policy(&config.routes, &config.tenancy);
    assert_eq!(policy["otherwise"]["key"], "optional");
    assert!(config.notes[0].contains("a request without a key passes as before"));
}

#[test]
fn what_lasts_as_long_as_both_ends_wish_has_a_number_and_may_be_forbidden() {
    let text = "[upstream]\nurl = \"http://a\"\nlong_lived = 0\nstream_idle = \"5m\"";
    let upstream = read(text).unwrap().upstream;
    assert_eq!((upstream.long_lived_max, upstream.silence_max), (0, Duration::from_secs(300)));
    let refused = read("[upstream]\nurl = \"http://a\"\nlong_lived = -1").unwrap_err();
    let advice = "`long_lived` is out of range; write a number from 0 to 1000000 instead";
    assert!(refused.to_string().contains(advice), "{refused}");
}

#[test]
fn without_an_upstream_nothing_is_started() {
    let nothing = Config::load(&ConfigSource::default()).unwrap_err();
    assert!(matches!(nothing, ConfigError::NoUpstream), "{nothing}");
}

#[test]
fn a_flag_counts_for_more_than_the_file() {
    let file = "listen = \"127.0.0.1:1\"\nstore = \"memory:\"\n[upstream]\nurl = \"http://a\"";
    let overrides = Overrides {
        listen: Some("127.0.0.1:2".to_owned()),
        admin: Some("off".to_owned()),
        upstream: Some("http://b".to_owned()),
        store: Some("sqlite:x.db".to_owned()),
        tenant: Some("shop".to_owned()),
        admin_token: Some("token".to_owned()),
        mode: None,
    };
    let config = Config::parse("gateway.toml".as_ref(), file, &overrides).unwrap();
    assert_eq!(config.listen, "127.0.0.1:2".parse().unwrap());
    assert_eq!(config.admin, None);
    assert_eq!(config.upstream.url, "http://b");
    assert_eq!(config.store, "sqlite:x.db");
    assert_eq!(config.admin_token.as_deref(), Some("token"));
}

#[test]
fn a_named_route_needs_a_key_and_other_requests_may_bring_one() {
    let config = routes("[[route]]\nmatch = \"POST /payments\"");
    let policy = published_policy(&config.routes, &config.tenancy);
    assert_eq!(policy["routes"][0]["key"], "required");
    assert_eq!(policy["otherwise"]["key"], "optional");
    let config = routes("[defaults]\nkey = \"required\"\n[[route]]\nmatch = \"POST /payments\"");
    assert_eq!(published_policy(&config.routes, &config.tenancy)["otherwise"]["key"], "required");
}

#[test]
fn a_route_is_watched_alone_where_it_or_the_defaults_or_a_flag_say_so() {
    let file = "[upstream]\nurl = \"http://a\"\n[defaults]\nmode = \"observe\"\n\
                [[route]]\nmatch = \"POST /a\"\nmode = \"enforce\"\n\
                [[route]]\nmatch = \"POST, PUT /b\"\n\
                [[route]]\nmatch = \"POST /c\"\ntreatment = \"refuse\"\n";
    for (mode, observed) in [
        (None, &["POST /b", "PUT /b", "otherwise"][..]),
        (Some(RouteMode::Observe), &["POST /a", "POST /b", "PUT /b", "otherwise"]),
        (Some(RouteMode::Enforce), &[]),
    ] {
        let overrides = Overrides { mode, ..Overrides::default() };
        let config = Config::parse("gateway.toml".as_ref(), file, &overrides).unwrap();
        assert_eq!(config.routes.observed_labels(), observed, "{mode:?}");
        let told = describe(&config);
        assert_eq!(told.contains("note: watched alone: "), !observed.is_empty(), "{told}");
        assert!(told.contains("POST /c: refused"), "a flag opens nothing: {told}");
    }
}

/// What one route of this text publishes, for the members that are expected.
fn check(settings: &str, expected: &Value) {
    let config = routes(&format!("[[route]]\nmatch = \"POST /a\"\n{settings}"));
    let policy = published_policy(&config.routes, &config.tenancy);
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(policy["routes"][0][name], *value, "{name} of {settings}");
    }
}

#[test]
fn every_setting_of_a_route_is_in_force() {
    check("key = \"strict\"", &json!({ "key": "required", "key_form": "quoted" }));
    check("header = \"X-Request-Id\"", &json!({ "header": "x-request-id" }));
    check("dialect = \"repeatability\"", &json!({ "header": "repeatability-request-id" }));
    let vendor = json!({
        "dialect": "stripe",
        "header": "idempotency-key",
        "key_form": "as it is",
        "results": "stripe",
    });
    check("dialect = \"stripe\"", &vendor);
    check("dialect = \"stripe\"\nresults = \"terminal\"", &json!({ "results": "terminal" }));
    let vendor = json!({ "header": "paypal-request-id", "results": "terminal" });
    check("dialect = \"paypal\"", &vendor);
    check("dialect = \"adyen\"", &json!({ "dialect": "adyen", "header": "idempotency-key" }));
    check("scope = \"pay\"", &json!({ "scope": "caller and route" }));
    check("tenant = \"single\"", &json!({ "scope": "method and path, for all callers alike" }));
    check("", &json!({ "compared": "body by its media type" }));
    check("fingerprint.ignore = \"/sent_at\"", &json!({ "compared": "body by its media type" }));
    check("fingerprint.body = \"raw\"", &json!({ "compared": "bytes of the body" }));
    check("fingerprint.body = \"json\"", &json!({ "compared": "JSON value of the body" }));
    check("fingerprint.headers = \"X-A\"", &json!({ "compared_headers": ["x-a"] }));
    check("retention = \"7d\"", &json!({ "retention_seconds": 604_800 }));
    check("tombstone = \"1d\"", &json!({ "tombstone_seconds": 86_400 }));
    check("in_flight = \"wait\"\nwait = \"5s\"", &json!({ "in_flight": "wait, then 409" }));
    check("in_flight = \"accept\"", &json!({ "in_flight": "202" }));
    check("wait_max = \"60s\"", &json!({ "wait_seconds_max": 60 }));
    check("results = \"at-most-once\"", &json!({ "results": "at-most-once" }));
    check("recovery = \"resend\"", &json!({ "recovery": "resend" }));
    check("recovery = \"probe\"\nprobe = \"/by/{key}\"", &json!({ "recovery": "probe" }));
    check("request_max = \"2MiB\"", &json!({ "request_bytes_max": 2 << 20 }));
    check("response_max = \"16MiB\"", &json!({ "response_bytes_max": 16 << 20 }));
    check("treatment = \"pass\"", &json!({ "protected": false }));
    check("treatment = \"refuse\"", &json!({ "protected": false, "refused": true }));
}

#[test]
fn what_the_upstream_is_told_and_how_it_reads_is_described() {
    let config = read(
        "otherwise = \"refuse\"\n[upstream]\nurl = \"http://a\"\nkeep_host = true\npaths = \"literal\"\n\
         [[route]]\nmatch = \"POST /%70ay\"\nforward_key = \"bare\"\n\
         [[route]]\nmatch = \"POST /closed\"\ntreatment = \"refuse\"",
    );
    let config = config.unwrap();
    let policy = published_policy(&config.routes, &config.tenancy);
    assert_eq!(
        (&policy["routes"][0]["path"], &policy["routes"][0]["hosts"]),
        (&json!("/pay"), &json!("apart"))
    );
    let summary = describe(&config);
    for part in [
        "which reads paths literally",
        "key forwarded bare, each host has keys of its own",
        "POST /closed: refused",
        "other requests that change something: refused",
    ] {
        assert!(summary.contains(part), "{part} is not in\n{summary}");
    }
}

#[test]
fn a_route_counts_for_more_than_the_defaults() {
    let config = routes(
        "[defaults]\nretention = \"2d\"\ndialect = \"repeatability\"\nrecovery = \"probe\"\n\
         probe = \"/by/{key}\"\nin_flight = \"wait\"\nwait = \"5s\"\nfingerprint.body = \"json\"\n\
         [[route]]\nmatch = \"POST /a\"\nretention = \"3d\"\nheader = \"X-Key\"\n\
         recovery = \"hold\"\nin_flight = \"reject\"\nfingerprint.headers = []\n\
         [[route]]\nmatch = \"POST /b\"",
    );
    let policy = published_policy(&config.routes, &config.tenancy);
    let (a, b) = (&policy["routes"][0], &policy["routes"][1]);
    assert_eq!(
        (&a["retention_seconds"], &b["retention_seconds"]),
        (&json!(259_200), &json!(172_800))
    );
    assert_eq!((&a["header"], &b["header"]), (&json!("x-key"), &json!("repeatability-request-id")));
    assert_eq!((&a["recovery"], &b["recovery"]), (&json!("hold"), &json!("probe")));
    assert_eq!((&a["in_flight"], &b["in_flight"]), (&json!("409"), &json!("wait, then 409")));
    assert_eq!(a["compared"], b["compared"]);
}

#[test]
fn whoever_compares_other_headers_is_told_which() {
    let usual = routes("[[route]]\nmatch = \"POST /a\"");
    assert!(!describe(&usual).contains("compares the headers"));
    let own = routes("[[route]]\nmatch = \"POST /a\"\nfingerprint.headers = [\"X-A\", \"X-B\"]");
    assert!(describe(&own).contains("compares the headers [x-a x-b] alone"), "{}", describe(&own));
}

#[test]
fn pages_of_other_origins_are_named_as_browsers_name_them() {
    let silent = routes("");
    assert_eq!(silent.cors, None);
    assert!(!describe(&silent).contains("pages of"));
    let origins = "[\"HTTPS://Shop.example:443\", \"http://localhost:3000\"]";
    let config = routes(&format!("[cors]\norigins = {origins}\ncredentials = true"));
    let told =
        "pages of https://shop.example, http://localhost:3000 may read answers, with cookies";
    assert!(describe(&config).contains(told), "{}", describe(&config));
    let anybody = routes("[cors]\norigins = \"*\"");
    assert!(describe(&anybody).contains("pages of any origin may read answers"));
}

#[test]
fn a_star_stands_for_every_method_that_changes_something() {
    let config = routes("[[route]]\nmatch = \"* /v1/*\"\n[[route]]\nmatch = \"POST, PUT /v2\"");
    let policy = published_policy(&config.routes, &config.tenancy);
    let methods: Vec<_> =
        policy["routes"].as_array().unwrap().iter().map(|r| &r["method"]).collect();
    assert_eq!(methods, ["POST", "PUT", "PATCH", "DELETE", "POST", "PUT"]);
}

#[test]
fn a_lease_that_nobody_names_is_longer_than_the_timeout() {
    let config = routes("[[route]]\nmatch = \"POST /slow\"\ntimeout = \"2m\"");
    assert!(config.summary[0].contains("timeout 2m, lease 125s"), "{}", config.summary[0]);
}

#[test]
fn what_others_should_know_is_noted() {
    let config = read(
        "store = \"memory:\"\n[upstream]\nurl = \"http://a\"\n[[route]]\nmatch = \"POST /later\"\n\
         in_flight = \"accept\"\n[[route]]\nmatch = \"POST /loose\"\nstore_down = \"run-unprotected\"",
    );
    let notes = config.unwrap().notes;
    for expected in [
        "POST /later: the store is memory",
        "POST /later: requests with credentials are refused where they would be run later",
        "POST /later: a 500 or 503 of the upstream frees the key",
        "POST /loose: a 500 or 503 of the upstream frees the key",
        "POST /loose: requests run WITHOUT PROTECTION",
        "other requests that change something: a 500 or 503 of the upstream frees the key",
        "no tenant is configured",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(expected)), "{expected}: {notes:?}");
    }
    assert_eq!(notes.len(), 7, "{notes:?}");
}

#[test]
fn that_nobody_says_who_callers_are_is_noted_unless_they_are_asked_about() {
    let noted = |rest: &str| {
        let config = read(&format!("[upstream]\nurl = \"http://a\"\n{rest}")).unwrap();
        config.notes.iter().any(|note| note.starts_with("no tenant is configured"))
    };
    assert!(noted(""));
    assert!(
        noted("[[route]]\nmatch = \"POST /a\"\nrevalidate = \"/me\""),
        "the rest is protected too"
    );
    assert!(!noted("[tenant]\nfrom = \"credential\""));
    assert!(!noted("[defaults]\nrevalidate = \"/me\""));
}

#[test]
fn a_route_may_have_its_callers_asked_about_and_name_its_secrets() {
    let config = routes(
        "[[route]]\nmatch = \"POST /a\"\nrevalidate = \"GET /me?full=1\"\n\
         secret_headers = [\"X-Badge\"]",
    );
    assert!(config.summary[0].contains("asks anew who may hear"), "{}", config.summary[0]);
    for refused in
        ["revalidate = \"me\"", "revalidate = \"POST /me\"", "secret_headers = [\"a b\"]"]
    {
        let file =
            format!("[upstream]\nurl = \"http://a\"\n[[route]]\nmatch = \"POST /a\"\n{refused}");
        assert!(read(&file).is_err(), "{refused}");
    }
}

#[test]
fn the_summary_names_every_route_and_no_secret() {
    let config = read(
        "store = \"postgres://hapax:hunter2@db/hapax?password=hunter3\"\nadmin_token = \"hunter4\"\n\
         [upstream]\nurl = \"http://a\"\n[tenant]\nfrom = \"jwt\"\n\
         secret = \"hunter5-hunter5-hunter5-hunter5-hunter5\"\n\
         [[route]]\nmatch = \"POST /payments/{id}\"\nretention = \"7d\"\n\
         [[route]]\nmatch = \"POST /login\"\ntreatment = \"pass\"",
    );
    let config = config.unwrap();
    let summary = describe(&config);
    for part in [
        "POST /payments/{id}: mode enforce, key required",
        "kept 7d",
        "POST /login: passes",
        "…@db/hapax",
    ] {
        assert!(summary.contains(part), "{part} is not in\n{summary}");
    }
    assert!(!summary.contains("hunter") && !format!("{config:?}").contains("hunter"), "{summary}");
}

#[test]
fn who_may_look_and_by_which_names_is_in_force_and_described_without_the_tokens() {
    let rest = "[upstream]\nurl = \"http://a\"";
    for (settings, described) in [
        ("", "health and metrics alone"),
        ("admin_token = \"hunter2\"", "with a token"),
        ("admin_read_token = \"hunter3\"", "with a token to look alone"),
        (
            "admin_token = \"hunter2\"\nadmin_read_token = \"hunter3\"\nadmin_hosts = [\"Ops.example\"]",
            "with a token, and another one to look alone; browsers may come by ops.example too",
        ),
    ] {
        let config = read(&format!("{settings}\n{rest}")).unwrap();
        let told = describe(&config);
        let line = format!("admin at http://127.0.0.1:8081, {described}\n");
        assert!(told.contains(&line) && !told.contains("hunter"), "{told}");
        assert_eq!(config.admin_read_token.is_some(), settings.contains("hunter3"));
    }
    // A token that only lets look guards an address that others reach, too.
    read(&format!("admin = \"0.0.0.0:9\"\nadmin_read_token = \"hunter3\"\n{rest}")).unwrap();
}

#[test]
fn a_provider_signs_people_in_on_any_address_and_its_secret_is_not_shown() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("oidc.secret"), "hunter2\n").unwrap();
    let file = "admin = \"0.0.0.0:9\"\n[upstream]\nurl = \"http://a\"\n[admin_oidc]\n\
                issuer = \"https://login.example.com/\"\nclient_id = \"hapax\"\n\
                client_secret_file = \"oidc.secret\"\ndashboard = \"https://hapax.example.com\"\n\
                operate = [\"oncall\", \"leads\"]\nread = \"staff\"";
    let path = dir.path().join("gateway.toml");
    let config = Config::parse(&path, file, &Overrides::default()).unwrap();
    let told = describe(&config);
    let line = "the dashboard signs in by https://login.example.com/: by claim groups, \
                oncall or leads may change keys, staff may look\n";
    assert!(told.contains(line) && told.contains("http://0.0.0.0:9, without a token\n"), "{told}");
    let oidc = config.admin_oidc.unwrap();
    assert_eq!(oidc.issuer, "https://login.example.com/", "it is compared letter by letter");
    assert_eq!((oidc.called.as_str(), oidc.person.as_str()), ("login.example.com", "email"));
    assert_eq!(oidc.scopes, ["openid", "email", "profile"]);
    assert_eq!(oidc.client_secret, Some("hunter2".to_owned().into()));
    assert!(!told.contains("hunter2") && !format!("{oidc:?}").contains("hunter2"));
}
