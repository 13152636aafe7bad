//! Text, JSON and bytes reach the functions as they are, however a driver passes them.

use tokio_postgres::{Row, types::Type};

use super::{Service, shop};

/// Texts that PostgreSQL's notation for bytes would change or refuse.
const TEXTS: &[&str] = &[
    "{\"p\":\"C:\\\\temp\"}",
    "{\"d\":\"\\d\"}",
    "{\"quoted\":\"\\\"\"}",
    "{\"line\":\"a\\nb\"}",
    "\\",
    "\\\\",
    "\\000",
    "\\x4",
    "\\xzz",
    " \\x41",
    "\\x41 and more",
    "{\"umlaut\":\"\u{fc} \u{1f980}\"}",
    "it's",
    "",
];

/// How a driver passes a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Written into the statement, as psycopg2 does.
    Literal,
    /// A parameter without a type, as node-postgres and psycopg 3 send it.
    Untyped,
    /// A parameter said to be of type `unknown`.
    Unknown,
    /// As `text`.
    Text,
    /// As `varchar`, as JDBC sends it.
    Varchar,
}

const STYLES: [Style; 5] =
    [Style::Literal, Style::Untyped, Style::Unknown, Style::Text, Style::Varchar];

/// Runs a statement in which `{}` stands for the text.
async fn ask(service: &Service, style: Style, statement: &str, text: &str) -> Vec<Row> {
    let (value, types) = match style {
        Style::Literal => (format!("'{}'", text.replace('\'', "''")), vec![]),
        Style::Untyped => ("$1".to_owned(), vec![]),
        Style::Unknown => ("$1".to_owned(), vec![Type::UNKNOWN]),
        Style::Text => ("$1".to_owned(), vec![Type::TEXT]),
        Style::Varchar => ("$1".to_owned(), vec![Type::VARCHAR]),
    };
    let statement = statement.replace("{}", &value);
    let prepared = service.client.prepare_typed(&statement, &types).await;
    let prepared = prepared.unwrap_or_else(|error| panic!("{style:?} {statement}: {error:?}"));
    let rows = match style {
        Style::Literal => service.client.query(&prepared, &[]).await,
        Style::Untyped | Style::Unknown | Style::Text | Style::Varchar => {
            service.client.query(&prepared, &[&text]).await
        }
    };
    rows.unwrap_or_else(|error| panic!("{style:?} {statement} with {text}: {error:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_is_stored_as_it_is_however_it_is_passed() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    for (number, text) in TEXTS.iter().enumerate() {
        for style in STYLES {
            let key = format!("{number} {style:?}");
            let id = format!("hapax.operation_id('acme', 's', '{key}')");
            let begin = format!(
                "SELECT decision, body FROM hapax.begin('acme', 's', '{key}', request => {{}})"
            );
            service.run("BEGIN").await;
            let begun = ask(&service, style, &begin, text).await;
            assert_eq!(begun[0].get::<_, &str>(0), "execute");
            let finish = format!("SELECT hapax.finish({id}, 1, 201, body => {{}})");
            ask(&service, style, &finish, text).await;
            ask(&service, style, &format!("SELECT hapax.emit('t', '{key}', {{}})"), text).await;
            let deliver = format!("SELECT hapax.first_delivery('c', '{key}', {{}})");
            assert!(ask(&service, style, &deliver, text).await[0].get::<_, bool>(0));
            service.run("COMMIT").await;
            // The same request, message and body, if all were UTF-8 from the beginning.
            let bytes = begin.replace("{}", "convert_to($1::text, 'UTF8')");
            let replayed = service.client.query_one(&bytes, &[text]).await.unwrap();
            assert_eq!(replayed.get::<_, &str>(0), "replay", "{style:?} {text}");
            assert_eq!(replayed.get::<_, &[u8]>(1), text.as_bytes(), "{style:?} {text}");
            let bytes = deliver.replace("{}", "convert_to($1::text, 'UTF8')");
            assert!(!service.client.query_one(&bytes, &[text]).await.unwrap().get::<_, bool>(0));
            let payload = format!("SELECT payload FROM hapax.outbox WHERE key = '{key}'");
            let payload = service.client.query_one(&payload, &[]).await.unwrap();
            assert_eq!(payload.get::<_, &[u8]>(0), text.as_bytes(), "{style:?} {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_json_and_the_hexadecimal_notation_are_taken_alike() {
    let (database, _store) = shop().await;
    let service = Service::new(&database).await;
    let every: Vec<u8> = (0..=255).collect();
    let hex = format!("\\x{}", every.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    let cases: [(&str, &[u8]); 8] = [
        ("decode(substr('{hex}', 3), 'hex')", &every),
        ("'{hex}'", &every),
        ("'{hex}'::text", &every),
        ("'\\x'", b""),
        ("'{\"a\": \"\\\\\"}'::jsonb", b"{\"a\": \"\\\\\"}"),
        ("'{\"a\":  1}'::json", b"{\"a\":  1}"),
        ("'x'::name", b"x"),
        ("'null'::jsonb", b"null"),
    ];
    for (number, (value, bytes)) in cases.into_iter().enumerate() {
        let value = value.replace("{hex}", &hex);
        service
            .run(&format!(
                "BEGIN; SELECT hapax.begin('acme', 's', '{number}'); \
                 SELECT hapax.fail(hapax.operation_id('acme', 's', '{number}'), 1, body => {value}); COMMIT"
            ))
            .await;
        let begun = service.ask(&format!("'acme', 's', '{number}'")).await.unwrap();
        assert_eq!(begun.body.as_deref(), Some(bytes), "{value}");
    }
    // A driver that says what it sends is believed.
    let typed = "SELECT hapax.emit('t', 'typed', $1)";
    let typed = service.client.prepare_typed(typed, &[Type::BYTEA]).await.unwrap();
    service.client.query(&typed, &[&every]).await.unwrap();
    let payload = service.client.query_one("SELECT payload FROM hapax.outbox", &[]).await.unwrap();
    assert_eq!(payload.get::<_, &[u8]>(0), every);
    for value in ["1", "now()", "'{1}'::int[]"] {
        let refused = service.refused(&format!("SELECT hapax.emit('t', 'k', {value})")).await;
        assert_eq!(refused.code, "42883", "{value}: {refused:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_functions_do_not_mind_what_a_backslash_means_to_the_session() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    service.run("SET standard_conforming_strings = off; SET escape_string_warning = off").await;
    service.run("BEGIN").await;
    assert_eq!(service.pay("key").await, Ok(true));
    service.run("SELECT hapax.emit('t', 'k', 'p', '{\"a\": \"b\"}'); SELECT hapax.first_delivery('c', 'm')").await;
    service.run("SELECT hapax.lock_key('space', 'key'); COMMIT").await;
    assert_eq!(service.pay("key").await, Ok(false));
    let refused = service
        .refused("SELECT hapax.fail(gen_random_uuid(), 1, 400, '{\"a\": \"b\\\\nc\"}')")
        .await;
    assert_eq!(
        (refused.code.as_str(), &*refused.message),
        ("HX001", "a header that HTTP does not allow")
    );
    drop(store);
}
