//! Whom an examination may ask, and what it never sends.

use hapax_examine::{
    ApiCredentials, ApiUnderTest, BodyTemplate, ConsentError, ConsentScope, HttpAddress,
    HttpAddressError, KeyHeader, ReachedHost,
};

fn api(header: (&str, &str)) -> ApiUnderTest {
    let (address, path) = HttpAddress::parse("http://127.0.0.1:8080/payments").unwrap();
    let (name, value) = header;
    ApiUnderTest {
        addresses: vec![address],
        method: "POST".to_owned(),
        path,
        headers: Vec::new(),
        body: BodyTemplate {
            content_type: "application/json".to_owned(),
            text: r#"{"live_mode":false}"#.to_owned(),
            changed: None,
            invalid: None,
        },
        key: KeyHeader {
            name: "Idempotency-Key".to_owned(),
            syntax: None,
            uuids: false,
            first_sent: None,
        },
        credentials: ApiCredentials {
            main: vec![(name.to_owned(), value.to_owned())],
            ..ApiCredentials::default()
        },
        id: None,
        other_path: None,
        large_path: None,
    }
}

#[test]
fn credentials_that_look_live_are_seen_wherever_they_stand() {
    let aws = format!("AKIA{}", "A1B2C3D4E5F6G7H8");
    for value in [
        "Bearer sk_live_abc",
        "rk_live_abc",
        "Bearer live_0123456789abcdef",
        // sk_live_abc:
        "Basic c2tfbGl2ZV9hYmM6",
        "basic c2tfbGl2ZV9hYmM6",
        "token=sk%5Flive%5Fabc",
        &format!("AWS4-HMAC-SHA256 Credential={aws}/20300101/eu/s3/aws4_request"),
        "Bearer sq0atp-0123456789",
        "Bearer access_token$production$abc",
    ] {
        let live = api(("Authorization", value)).live_credential();
        assert!(live.is_some_and(|live| live.place == "the header Authorization"), "{value}");
    }
    for value in
        ["Bearer sk_test_abc", "Bearer alice", "Basic c2tfdGVzdF9hYmM6", "delivered live_x"]
    {
        assert_eq!(api(("Authorization", value)).live_credential(), None, "{value}");
    }
    let live = "sk_live_abc".to_owned();
    let body = format!(r#"{{"key":"{live}"}}"#);
    let header = || vec![("X-Token".to_owned(), live.clone())];
    type Change<'a> = &'a dyn Fn(&mut ApiUnderTest);
    let places: [(&str, Change<'_>); 9] = [
        ("the URL", &|api| api.path = format!("/payments?key={live}")),
        ("the other path", &|api| api.other_path = Some(format!("/refunds?key={live}"))),
        ("the path of large answers", &|api| api.large_path = Some(format!("/all?key={live}"))),
        ("the body", &|api| api.body.text = body.clone()),
        ("the changed body", &|api| api.body.changed = Some(body.clone())),
        ("the invalid body", &|api| api.body.invalid = Some(body.clone())),
        ("the header X-Token", &|api| api.headers = header()),
        ("the header X-Token", &|api| api.credentials.other = Some(header())),
        ("the header X-Token", &|api| api.credentials.revoked = Some(header())),
    ];
    for (place, put) in places {
        let mut api = api(("Accept", "*/*"));
        put(&mut api);
        assert_eq!(api.live_credential().unwrap().place, place);
    }
}

#[test]
fn a_url_with_a_password_is_refused_and_not_repeated() {
    let refused = HttpAddress::parse("http://sk_live_abc:@127.0.0.1/").unwrap_err();
    assert!(matches!(refused, HttpAddressError::Credentials));
    assert!(!refused.to_string().contains("abc"), "{refused}");
}

#[test]
fn hosts_are_seen_wherever_a_url_stands_in_a_text() {
    let check = |text: &str, hosts: &[&str]| {
        let found: Vec<_> = ReachedHost::in_text(text).into_iter().map(|one| one.host).collect();
        assert_eq!(found, hosts, "{text}");
    };
    check("curl -X POST 'https://api.example.com:8443/reset' && touch done", &["api.example.com"]);
    check(
        "psql postgres://u:p@db1:5432,db2/shop -c x; curl http://[::1]:80/",
        &["db1", "db2", "::1"],
    );
    check("curl http://$HOST/ http://{host}/ file:///tmp/x; docker kill api", &[]);
    let is_this_machine = |text: &str| ReachedHost::in_text(text)[0].is_loopback();
    assert!(is_this_machine("http://127.0.0.1:80") && is_this_machine("redis://localhost/1"));
    assert!(!is_this_machine("http://0.0.0.0/") && !is_this_machine("http://localhost.evil/"));
}

#[test]
fn where_real_money_moves_is_known() {
    let whose =
        |url: &str| ReachedHost::from(&HttpAddress::parse(url).unwrap().0).known_production();
    for url in [
        "https://connect.squareup.com/v2/payments",
        "https://api-m.paypal.com/",
        "https://1797a841fbb37ca7-AdyenDemo-checkout-live.adyenpayments.com/checkout",
    ] {
        assert!(whose(url).is_some(), "{url}");
    }
    for url in [
        "https://connect.squareupsandbox.com/",
        "https://api-m.sandbox.paypal.com/",
        "http://localhost/",
    ] {
        assert_eq!(whose(url), None, "{url}");
    }
}

#[test]
fn a_host_may_be_examined_if_somebody_is_named_who_allowed_it() {
    let text = "# payments team\n\napi.staging.example.com Ada Lovelace, OPS-12\n10.0.0.7: Grace\n:: Grace\n";
    let scope = ConsentScope::read(text).unwrap();
    assert_eq!(scope.who_allowed("API.staging.example.com"), Some("Ada Lovelace, OPS-12"));
    assert_eq!(scope.who_allowed("10.0.0.7"), Some("Grace"));
    assert_eq!(scope.who_allowed("::"), Some("Grace"));
    assert_eq!(scope.who_allowed("example.com"), None);
    let nobody = ConsentScope::read("# x\nexample.com\n");
    assert_eq!(nobody, Err(ConsentError::Nobody { line: 2, host: "example.com".to_owned() }));
    assert_eq!(ConsentScope::read("# x\n"), Err(ConsentError::Empty));
}
