//! Outcomes stored by the functions are opened by Rust, and the other way round, byte for byte.

use bytes::Bytes;
use hapax_core::{
    Body, Header, Outcome, StateTag, Store as _,
    codec::seal,
    store::{Settle, Settlement, Write},
};

use super::{Service, arguments, operation, record, shop};
use crate::reference::{claim, completion};

fn header(name: &str, value: &[u8]) -> Header {
    Header { name: name.to_owned(), value: Bytes::copy_from_slice(value) }
}

fn outcome(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Outcome {
    let headers = headers.iter().map(|(name, value)| header(name, value.as_bytes())).collect();
    Outcome::new(status, headers, Body::Kept(Bytes::copy_from_slice(body))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_stored_by_sql_is_sealed_as_by_rust() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    let longest = "v".repeat((32 << 10) - 1);
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    let largest = vec![0x5a; 16 << 20];
    // Names in the order of jsonb: short ones first.
    let cases = [
        ("{}".to_owned(), outcome(204, &[], b"")),
        ("{\"a\": \"\"}".to_owned(), outcome(100, &[("a", "")], b"\0")),
        (
            "{\"x-list\": [\"one\", \"two\"], \"etag\": \"caf\u{e9} \u{1f980}\\t!\"}".to_owned(),
            outcome(
                399,
                &[("etag", "caf\u{e9} \u{1f980}\t!"), ("x-list", "one"), ("x-list", "two")],
                &every_byte,
            ),
        ),
        ("{\"none\": []}".to_owned(), outcome(200, &[], b"none")),
        (format!("{{\"n\": \"{longest}\"}}"), outcome(201, &[("n", &longest)], &largest)),
        (
            format!("{{\"n\": [{}]}}", vec!["\"v\""; 128].join(",")),
            outcome(202, &[("n", "v"); 128], b"many"),
        ),
        ("{\"a\": \"b\"}".to_owned(), outcome(400, &[("a", "b")], b"refused")),
        ("{}".to_owned(), outcome(599, &[], b"failed")),
    ];
    for (at, (headers, expected)) in cases.into_iter().enumerate() {
        let key = format!("key {at}");
        service.run("BEGIN").await;
        let begun = service.begin(&key).await;
        let end = begun.end(
            if expected.status() < 400 { "finish" } else { "fail" },
            "$1, $2::text::jsonb, $3::bytea",
        );
        let Body::Kept(body) = expected.body() else { unreachable!("all of them are kept") };
        let (status, body) = (i32::from(expected.status()), body.to_vec());
        let text = format!("SELECT {end}");
        service.client.execute(&text, &[&status, &headers, &body]).await.unwrap();
        service.run("COMMIT").await;

        let id = operation(&key).id();
        let stored = record(&store, id).await.unwrap();
        let tag = if status < 400 { StateTag::Completed } else { StateTag::Failed };
        assert_eq!(stored.tag(), tag, "{headers:.100}");
        assert!(stored.outcome() == Some(&expected), "{headers:.100}: another outcome was stored");
        let sealed = seal(id, &expected);
        let text = "SELECT substr(answer, 21, $2), substr(answer, 1, 16) FROM hapax.operations WHERE key = $1";
        let head_bytes = i32::try_from(sealed.head.len()).unwrap();
        let row = service.client.query_one(text, &[&key, &head_bytes]).await.unwrap();
        assert_eq!(row.get::<_, &[u8]>(0), &sealed.head[..], "{headers:.100}");
        assert_eq!(row.get::<_, &[u8]>(1), sealed.digest, "{headers:.100}");
        let again = service.begin(&key).await;
        assert_eq!((again.decision.as_str(), again.status), ("replay", Some(status)));
        assert!(again.body == Some(body), "{headers:.100}: the replayed body is another");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_stored_by_rust_is_replayed_by_sql() {
    let (database, store) = shop().await;
    let service = Service::new(&database).await;
    let repeated = vec![
        header("set-cookie", b"a=1"),
        header("etag", b"\"1\""),
        header("set-cookie", b"b=2"),
        header("set-cookie", b"c=3"),
    ];
    let foreign = vec![header("x-utf8", "caf\u{e9}".as_bytes()), header("x-latin", b"caf\xe9")];
    let body: Vec<u8> = (0..=u8::MAX).rev().collect();
    let cases = [
        (Outcome::bare(204), "{}", Some(Vec::new())),
        (
            Outcome::new(201, repeated, Body::Kept(body.clone().into())).unwrap(),
            "{\"etag\": \"\\\"1\\\"\", \"set-cookie\": [\"a=1\", \"b=2\", \"c=3\"]}",
            Some(body),
        ),
        (
            Outcome::new(200, foreign, Body::Kept(Bytes::new())).unwrap(),
            "{\"x-utf8\": \"caf\u{e9}\", \"x-latin\": \"caf\u{e9}\"}",
            Some(Vec::new()),
        ),
        (
            Outcome::new(200, vec![header("a", b"b")], Body::NotKept { len: u64::MAX }).unwrap(),
            "{\"a\": \"b\"}",
            None,
        ),
    ];
    for (at, (outcome, headers, body)) in cases.into_iter().enumerate() {
        let key = format!("key {at}");
        let batch = vec![Write::Claim(claim(&key, 1))];
        store.commit(batch).await.remove(0).unwrap();
        let status = outcome.status();
        let settle = Settle { to: Settlement::Completed(outcome), ..completion(&key, 1, b"") };
        let batch = vec![Write::Settle(settle)];
        store.commit(batch).await.remove(0).unwrap();
        // The request that the reference's fingerprint stands for is unknown: take its place.
        let asked = "UPDATE hapax.operations SET fingerprint = \
                     hapax.fingerprint('acme', '', '', '', '{\"amount\": 100}') WHERE key = $1";
        service.client.execute(asked, &[&key]).await.unwrap();
        let begun = service.ask(&arguments(&key)).await.unwrap();
        assert_eq!((begun.decision.as_str(), begun.status), ("replay", Some(status.into())));
        assert_eq!(begun.headers.as_deref(), Some(headers));
        assert_eq!(begun.body, body);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outcome_that_was_altered_is_not_replayed() {
    let damages = [
        ("set_byte(answer, octet_length(answer) - 1, 7)", "HX006"),
        ("set_byte(answer, 23, 7)", "HX006"),
        ("substr(answer, 1, 19)", "HX006"),
        ("set_byte(answer, 18, 255)", "HX006"),
        (
            "substr(sha256(uuid_send(id) || substr(set_byte(answer, 21, 2), 17)), 1, 16) \
             || substr(set_byte(answer, 21, 2), 17)",
            "HX006",
        ),
        ("set_byte(answer, 20, 2)", "HX007"),
    ];
    for (damage, code) in damages {
        let (database, _store) = shop().await;
        let service = Service::new(&database).await;
        service.run("BEGIN").await;
        assert_eq!(service.pay("damaged").await, Ok(true));
        service.run("COMMIT").await;
        service.run(&format!("UPDATE hapax.operations SET answer = {damage}")).await;
        let refused = service.ask(&arguments("damaged")).await.unwrap_err();
        assert_eq!(refused.code, code, "{damage}: {refused:?}");
        assert!(refused.hint.is_some());
        service.run("UPDATE hapax.operations SET answer = NULL").await;
        assert_eq!(service.ask(&arguments("damaged")).await.unwrap_err().code, "HX006");
        service.run("UPDATE hapax.operations SET format = 2").await;
        assert_eq!(service.ask(&arguments("damaged")).await.unwrap_err().code, "HX007");
    }
}
