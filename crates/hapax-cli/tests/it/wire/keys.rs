//! Keys on the wire: which are refused, which are the same, which are two.

use super::{
    Expected::{Cut, Refused},
    ROUTES, Row, World, key, request, row,
};

const MALFORMED: super::Expected = Refused(400, "key-malformed");

fn keyed(name: &'static str, value: impl AsRef<[u8]>, expected: super::Expected) -> Row {
    row(name, request("/pay", key(value)), expected)
}

fn not_one_key() -> Vec<Row> {
    let long = "x".repeat(256);
    let twice = |first: &str, second: &str| request("/pay", [key(first), key(second)].concat());
    let repeated = Refused(400, "key-repeated");
    vec![
        row("missing", request("/pay", ""), Refused(400, "key-missing")),
        keyed("empty string", "\"\"", Refused(400, "key-empty")),
        keyed("empty line", "", Refused(400, "key-empty")),
        keyed("blanks", "   ", Refused(400, "key-empty")),
        keyed("256 characters", &long, Refused(400, "key-too-long")),
        keyed("256 characters, quoted", format!("\"{long}\""), Refused(400, "key-too-long")),
        keyed("256, other end", format!("{}y", &long[1..]), Refused(400, "key-too-long")),
        keyed("8 KiB", "x".repeat(8 << 10), Refused(400, "key-too-long")),
        row("twice, the same", twice("a", "a"), repeated),
        row("twice, different", twice("a", "b"), repeated),
        row("twice, in two spellings", twice("a", "\"a\""), repeated),
        keyed("list", "\"a\", \"b\"", MALFORMED),
        keyed("bare list", "a, b", MALFORMED),
        keyed("inner list", "(\"a\")", MALFORMED),
        keyed("parameter", "\"a\";v=1", MALFORMED),
        keyed("bare parameter", "a;v=1", MALFORMED),
        keyed("byte sequence", ":YWI=:", MALFORMED),
        keyed("boolean", "?1", MALFORMED),
        keyed("date", "@1659578233", MALFORMED),
        keyed("bad escape", "\"a\\n\"", MALFORMED),
        keyed("unclosed quote", "\"a", MALFORMED),
        keyed("text after the quote", "\"a\"b", MALFORMED),
        keyed("two strings", "\"a\" \"b\"", MALFORMED),
    ]
}

fn not_visible_ascii() -> Vec<Row> {
    vec![
        keyed("tab inside", "a\tb", MALFORMED),
        keyed("tab inside quotes", "\"a\tb\"", MALFORMED),
        keyed("UTF-8", "\"caf\u{e9}\"", MALFORMED),
        keyed("bare UTF-8", "caf\u{e9}", MALFORMED),
        keyed("homoglyph", "\u{43a}ey", MALFORMED),
        keyed("overlong UTF-8", b"a\xc0\xafb", MALFORMED),
        keyed("byte 0xff", b"\"a\xff\"", MALFORMED),
        keyed("NUL", "a\0b", Cut(400)),
        keyed("control byte", "a\x01b", Cut(400)),
        keyed("DEL", "a\x7fb", Cut(400)),
        keyed("bare CR", "a\rb", Cut(400)),
        keyed("injected line", "a\r\nb", Cut(400)),
        keyed("injected line by LF", "a\nb", Cut(400)),
        keyed("folded line", "a\r\n b", Cut(400)),
        row("space before the colon", request("/pay", "idempotency-key : a\r\n"), Cut(400)),
    ]
}

#[tokio::test]
async fn what_is_not_one_key_is_refused_and_the_connection_goes_on() {
    let world = World::start(ROUTES).await;
    for row in not_one_key() {
        world.check(&row).await;
    }
}

#[tokio::test]
async fn what_is_not_visible_ascii_never_becomes_a_key() {
    let world = World::start(ROUTES).await;
    for row in not_visible_ascii() {
        world.check(&row).await;
    }
}

#[tokio::test]
async fn a_strict_route_takes_nothing_but_a_quoted_string() {
    let world = World::start(ROUTES).await;
    let unquoted = Refused(400, "key-not-quoted");
    for (name, value, expected) in [
        ("token", "abc", unquoted),
        ("integer", "17", unquoted),
        ("decimal", "1.5", unquoted),
        ("byte sequence", ":YWI=:", MALFORMED),
        ("parameter", "\"abc\";v=1", MALFORMED),
    ] {
        world.check(&row(name, request("/strict", key(value)), expected)).await;
    }
    assert_eq!(world.ask(request("/strict", key("\"abc\""))).await.status, 201);
}

#[tokio::test]
async fn keys_are_opaque_and_kept_whole() {
    let world = World::start(ROUTES).await;
    let (long, sql) = ("x".repeat(255), "\"'; DROP TABLE records; --\"");
    for value in [
        "a",
        &long,
        sql,
        "%00",
        "../../etc/passwd",
        "{{7*7}}",
        "\"%s%n %d\"",
        "$(id)",
        "<script>",
        "\"a b\"",
        "\"a  b\"",
        "ABC",
        "abc",
        "\"a\\\"b\"",
    ] {
        let first = world.ask(request("/pay", key(value))).await;
        assert_eq!((first.status, first.is_replay()), (201, false), "{value}");
        let again = world.ask(request("/pay", key(value))).await;
        assert_eq!((&again.body, again.is_replay()), (&first.body, true), "{value}");
    }
    let claimed = world.claimed().await;
    for kept in [&long, "'; DROP TABLE records; --", "ABC", "abc", "a\"b", "a  b"] {
        assert!(claimed.iter().any(|key| key == kept), "{kept}");
    }
    assert_eq!((world.upstream.total(), claimed.len()), (14, 14));
    assert!(!world.gateway.log().contains("DROP TABLE"), "a key in the log");
}

#[tokio::test]
async fn spellings_of_one_key_are_one_operation() {
    let world = World::start(ROUTES).await;
    let first = world.ask(request("/pay", key("\"abc\""))).await;
    for value in ["abc", "   abc  ", "\t\"abc\" "] {
        let again = world.ask(request("/pay", key(value))).await;
        assert_eq!((&again.body, again.is_replay()), (&first.body, true), "{value:?}");
    }
    assert_eq!(world.upstream.total(), 1);
}

#[tokio::test]
async fn a_key_on_a_request_that_changes_nothing_is_ignored() {
    let world = World::start("").await;
    for method in ["GET", "HEAD", "OPTIONS"] {
        for _ in 0..2 {
            let head = format!("{method} /by-key/a HTTP/1.1\r\nhost: a\r\nconnection: close\r\n");
            let mut connection = crate::world::Connection::open(world.gateway.address).await;
            connection.send([head.as_bytes(), &key("a"), b"\r\n"].concat()).await;
            let mut said = String::new();
            let socket = connection.socket();
            tokio::io::AsyncReadExt::read_to_string(socket, &mut said).await.unwrap();
            assert!(said.starts_with("HTTP/1.1 404"), "{method}: {said}");
        }
    }
    assert_eq!((world.upstream.heads().len(), world.claimed().await.len()), (6, 0));
}
