//! Arguments that are refused: with a code of our own, a hint, and nothing written.

use super::{Service, arguments, shop};

/// Refused with this code, a message that says this, and a hint; nothing is stored.
async fn check(service: &Service, text: &str, code: &str, says: &str) {
    service.run("BEGIN").await;
    let refused = service.refused(text).await;
    assert_eq!(refused.code, code, "{text:.200}: {refused:?}");
    assert!(refused.message.contains(says), "{text:.200}: {refused:?}");
    assert!(refused.hint.is_some_and(|hint| !hint.is_empty()), "{text:.200}: no hint");
    assert_eq!(service.refused("SELECT 1").await.code, "25P02", "{text:.200} must abort");
    service.run("ROLLBACK").await;
    let rows =
        "SELECT (SELECT count(*) FROM hapax.operations) + (SELECT count(*) FROM hapax.outbox)";
    assert_eq!(service.number(rows).await, 0, "{text:.200} left something behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_are_not_names_are_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let cases = [
        ("NULL, 's', 'k'", "the tenant is NULL"),
        ("'t', NULL, 'k'", "the scope is NULL"),
        ("'t', 's', NULL", "the key is NULL"),
        ("'', 's', 'k'", "the tenant is empty"),
        ("'t', '   ', 'k'", "the scope is empty"),
        ("'t', 's', ''", "the key is empty"),
        ("repeat('t', 256), 's', 'k'", "the tenant is 256 bytes long"),
        ("'t', repeat('s', 1025), 'k'", "the scope is 1025 bytes long"),
        ("'t', 's', repeat('k', 256)", "the key is 256 bytes long"),
        ("'t', 's', E'k\\n'", "the key is not visible ASCII"),
        ("'t', 's', E'\\tk'", "the key is not visible ASCII"),
        ("'t', 's', 'schl\u{fc}ssel'", "the key is not visible ASCII"),
        ("'t', E's\\x7f', 'k'", "the scope is not visible ASCII"),
    ];
    for (names, says) in cases {
        check(&service, &format!("SELECT hapax.begin({names})"), "HX001", says).await;
    }
    let deliveries = [
        ("NULL, 'm'", "the scope is NULL"),
        ("'c', NULL", "the key is NULL"),
        ("'c', 'm', tenant => NULL", "the tenant is NULL"),
        ("'c', 'm', NULL", "the content is NULL"),
        ("'c', 'm', retention => NULL", "the retention is NULL"),
        ("'c', 'm', wait => NULL", "the wait is NULL"),
    ];
    for (names, says) in deliveries {
        check(&service, &format!("SELECT hapax.first_delivery({names})"), "HX001", says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_spans_out_of_bounds_are_refused_whoever_comes_first() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let cases = [
        ("request => NULL", "a part of the request is NULL"),
        ("method => NULL", "a part of the request is NULL"),
        ("path => NULL", "a part of the request is NULL"),
        ("query => NULL", "a part of the request is NULL"),
        ("retention => NULL", "the retention is NULL"),
        ("retention => '0.9 seconds'", "the retention is 00:00:00.9"),
        ("retention => '401 days'", "the retention is 401 days"),
        ("retention => '-1 day'", "the retention is -1 days"),
        ("tombstone => NULL", "the tombstone is NULL"),
        ("tombstone => '-1 second'", "the tombstone is -00:00:01"),
        ("tombstone => '401 days'", "the tombstone is 401 days"),
        ("wait => NULL", "the wait is NULL"),
        ("wait => '-1 second'", "the wait is -00:00:01"),
        ("wait => '61 seconds'", "the wait is 00:01:01"),
    ];
    for (argument, says) in cases {
        let begin = format!("SELECT hapax.begin('acme', 'POST /pay', 'key', {argument})");
        check(&service, &begin, "HX001", says).await;
    }
}

/// Begins and ends in one text, so that the end can be refused as any other call.
fn ended(end: &str) -> String {
    format!("SELECT hapax.{end} FROM hapax.begin({}) AS b", arguments("key"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_with_the_wrong_status_or_without_a_part_is_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    for status in ["99", "400", "599", "0", "-200", "70000", "NULL"] {
        check(&service, &ended(&format!("finish(operation, fence, {status})")), "HX001", "finish")
            .await;
    }
    for status in ["399", "600", "200", "0", "-400", "70000", "NULL"] {
        check(&service, &ended(&format!("fail(operation, fence, {status})")), "HX001", "fail")
            .await;
    }
    for function in ["finish", "fail"] {
        for rest in [
            "(NULL, b.fence)",
            "(b.operation, NULL)",
            "(b.operation, b.fence, headers => NULL)",
            "(b.operation, b.fence, body => NULL)",
        ] {
            check(&service, &ended(&format!("{function}{rest}")), "HX001", function).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_that_are_not_headers_are_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let cases = [
        ("'[]'", "not a JSON object"),
        ("'\"a\"'", "not a JSON object"),
        ("'null'", "not a JSON object"),
        ("'{\"a\": 1}'", "neither text nor a list"),
        ("'{\"a\": null}'", "neither text nor a list"),
        ("'{\"a\": {\"b\": \"c\"}}'", "neither text nor a list"),
        ("'{\"a\": [\"b\", [\"c\"]]}'", "neither text nor a list"),
        ("'{\"a\": \"b\\r\\nc: d\"}'", "HTTP does not allow"),
        ("'{\"a\": \"b\\nc\"}'", "HTTP does not allow"),
        ("'{\"a\": [\"b\", \"c\\u0001\"]}'", "HTTP does not allow"),
        ("'{\"a\": \"b\\u007f\"}'", "HTTP does not allow"),
        ("'{\"\": \"b\"}'", "HTTP does not allow"),
        ("'{\"a b\": \"c\"}'", "HTTP does not allow"),
        ("'{\"a\\r\\n\": \"c\"}'", "HTTP does not allow"),
        ("'{\"a:\": \"c\"}'", "HTTP does not allow"),
        ("'{\"\u{e4}\": \"c\"}'", "HTTP does not allow"),
    ];
    for (headers, says) in cases {
        let end = ended(&format!("finish(operation, fence, 200, {headers})"));
        check(&service, &end, "HX001", says).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_large_is_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let ends = [
        ("'{}', convert_to(repeat('b', 16777217), 'UTF8')", "16 MiB"),
        ("jsonb_build_object('a', repeat('v', 32768))", "32 KiB"),
        ("jsonb_build_object('a', repeat('v', 65535))", "32 KiB"),
        ("jsonb_build_object('a', repeat('v', 1000000))", "32 KiB"),
        ("jsonb_build_object(repeat('n', 70000), 'v')", "32 KiB"),
        ("jsonb_build_object('a', array_fill('v'::text, ARRAY[129]))", "128 headers"),
        ("jsonb_build_object('a', array_fill('v'::text, ARRAY[70000]))", "128 headers"),
    ];
    for (rest, says) in ends {
        for end in [
            format!("finish(operation, fence, 200, {rest})"),
            format!("fail(operation, fence, 400, {rest})"),
        ] {
            check(&service, &ended(&end), "HX004", says).await;
        }
    }
    let payload = "convert_to(repeat('p', 1048577), 'UTF8')";
    check(&service, &format!("SELECT hapax.emit('t', 'k', {payload})"), "HX004", "1 MiB").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_are_not_events_are_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let names = [
        "NULL, 'k', ''",
        "'t', NULL, ''",
        "'t', 'k', NULL",
        "'', 'k', ''",
        "'t', '', ''",
        "repeat('t', 256), 'k', ''",
        "'t', repeat('k', 256), ''",
        "'t', 'k', '', content_type => NULL",
        "'t', 'k', '', content_type => ''",
        "'t', 'k', '', content_type => repeat('c', 256)",
        "'t', 'k', '', headers => NULL",
        "'t', 'k', '', id => NULL",
    ];
    for event in names {
        check(&service, &format!("SELECT hapax.emit({event})"), "HX001", "hapax.emit").await;
    }
    let headers = [
        "'[]'",
        "'\"a\"'",
        "'null'",
        "'{\"a\": 1}'",
        "'{\"a\": [\"b\"]}'",
        "'{\"a\": {\"b\": \"c\"}}'",
        "'{\"\": \"b\"}'",
        "jsonb_build_object(repeat('n', 256), 'v')",
        "(SELECT jsonb_object_agg('h' || n, 'v') FROM generate_series(1, 65) AS n)",
    ];
    for headers in headers {
        let emit = format!("SELECT hapax.emit('t', 'k', '', headers => {headers})");
        check(&service, &emit, "HX001", "headers").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_is_not_there_is_refused() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    check(&service, "SELECT hapax.grant_functions(NULL)", "HX001", "the role is NULL").await;
    let unknown = service.refused("SELECT hapax.grant_functions('hapax_nobody')").await;
    assert_eq!(unknown.code, "42704");
    assert!(unknown.message.contains("hapax_nobody"));
}
