//! What a route compares unless it says otherwise: bodies by their media type, and the headers that
//! say what is asked for and for whom.

use std::io::Write as _;

use flate2::{Compression, GzBuilder};
use hapax_tower::{ComparedHeaders, Protection};

use crate::world::{Answer, World, keyed};

/// A request as somebody builds it: its content type, its coding, its bytes.
#[derive(Debug, Clone)]
struct Built {
    content_type: Option<&'static str>,
    coding: Option<&'static str>,
    body: Vec<u8>,
}

fn built(content_type: &'static str, body: impl AsRef<[u8]>) -> Built {
    Built { content_type: Some(content_type), coding: None, body: body.as_ref().to_vec() }
}

fn zipped(time: u32, built: &Built) -> Built {
    let mut writer = GzBuilder::new().mtime(time).write(Vec::new(), Compression::default());
    writer.write_all(&built.body).unwrap();
    Built { coding: Some("gzip"), body: writer.finish().unwrap(), ..built.clone() }
}

async fn send(world: &World, built: &Built) -> Answer {
    let mut request = keyed("/pay");
    if let Some(content_type) = built.content_type {
        request = request.header("content-type", content_type);
    }
    if let Some(coding) = built.coding {
        request = request.header("content-encoding", coding);
    }
    world.send(request, &built.body).await
}

/// Each of these is the first request again, or each of those is another one, and nothing is refused
/// for its form.
async fn check(first: &Built, same: &[Built], others: &[Built]) {
    let world = World::new();
    assert_eq!(send(&world, first).await.status, 201, "{first:?}");
    assert!(send(&world, first).await.is_replay(), "{first:?}");
    for again in same {
        assert!(send(&world, again).await.is_replay(), "{first:?} and {again:?}");
    }
    for other in others {
        send(&world, other).await.check(422, "key-reused");
    }
    assert_eq!(world.runs(), 1);
}

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

#[tokio::test(start_paused = true)]
async fn json_built_anew_is_the_same_request_and_another_value_is_not() {
    let first = built(JSON, r#"{"amount":100,"to":{"b":1,"a":2}}"#);
    let again = r#"{ "to": {"a":2, "b":1}, "amount": 1e2 }"#;
    let other_type = built("application/vnd.shop+json", &first.body);
    let versioned = built("application/json; version=2", &first.body);
    check(
        &first,
        &[
            built(JSON, again),
            built("application/json; charset=utf-8", again),
            built("Application/JSON;charset=UTF-8", &first.body),
        ],
        &[
            built(JSON, r#"{"amount":101,"to":{"b":1,"a":2}}"#),
            built(JSON, r#"{"amount":100,"to":{"b":1,"a":2},"x":0}"#),
            built(JSON, ""),
            zipped(0, &first),
            other_type,
            versioned,
            built("text/plain", &first.body),
            Built { content_type: None, ..first.clone() },
            Built { coding: Some("br"), ..first.clone() },
        ],
    )
    .await;
    check(
        &built("application/vnd.shop+json", &first.body),
        &[built("application/vnd.shop+json", again)],
        &[],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn json_without_a_single_meaning_is_compared_byte_by_byte() {
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    for (body, spaced) in [
        (r#"{"a":1,"a":2}"#, r#"{"a":1, "a":2}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"a":1,"a":2}"#),
        ("1e400", " 1e400"),
        ("{", "{ "),
        (r#""\ud800""#, r#" "\ud800""#),
        ("\u{feff}1", "\u{feff} 1"),
        (&deep, &format!(" {deep}")),
    ] {
        check(&built(JSON, body), &[], &[built(JSON, spaced)]).await;
    }
    let text = b"\"\x80\"";
    let western = built("application/json; charset=windows-1252", text);
    check(&western, &[], &[built("application/json; charset=iso-8859-1", text)]).await;
}

#[tokio::test(start_paused = true)]
async fn a_form_is_compared_by_its_fields_in_their_order() {
    let first = built(FORM, "to=Zo%C3%AB+M&amount=10&item[]=a&item[]=b");
    check(
        &first,
        &[
            built(FORM, "to=Zo%c3%ab%20M&amount=%31%30&item%5B%5D=a&item[]=b"),
            built("application/x-www-form-urlencoded; charset=UTF-8", &first.body),
        ],
        &[
            built(FORM, "amount=10&to=Zo%C3%AB+M&item[]=a&item[]=b"),
            built(FORM, "to=Zo%C3%AB+M&amount=10&item[]=b&item[]=a"),
            built(FORM, "to=Zo%C3%AB+M&amount=10&item[]=a%26item[]=b"),
            built(FORM, "to=Zo%C3%AB%2BM&amount=10&item[]=a&item[]=b"),
            built("text/plain", &first.body),
        ],
    )
    .await;
    check(&built(FORM, "a=%zz"), &[], &[built(FORM, "a=%ZZ")]).await;
}

fn parts(boundary: &str, file: &str) -> String {
    format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"slip\"; filename=\"a\"\r\n\r\n\
         {file}\r\n--{boundary}--\r\n"
    )
}

#[tokio::test(start_paused = true)]
async fn a_multipart_body_with_another_boundary_is_the_same_request() {
    let one = "multipart/form-data; boundary=one";
    let two = "multipart/form-data; boundary=----=_two";
    let first = built(one, parts("one", "text"));
    check(
        &first,
        &[built(two, parts("----=_two", "text"))],
        &[
            built(two, parts("----=_two", "texts")),
            built(two, parts("one", "text")),
            built(two, format!("{}epilogue", parts("----=_two", "text"))),
            zipped(0, &first),
        ],
    )
    .await;
    check(&built(one, "no parts"), &[], &[built(two, "no parts"), built(one, "no  parts")]).await;
}

#[tokio::test(start_paused = true)]
async fn a_body_compressed_anew_is_the_same_request_and_other_content_is_not() {
    let json = built(JSON, r#"{"a":1,"b":2}"#);
    let reordered = built("application/json; charset=utf-8", r#"{"b":2,"a":1}"#);
    let first = zipped(1, &json);
    let others = [
        zipped(1, &built(JSON, r#"{"a":1,"b":3}"#)),
        Built { coding: Some("deflate"), ..first.clone() },
        Built { coding: Some("gzip, gzip"), ..first.clone() },
        Built { body: [&first.body[..], b"\0"].concat(), ..first.clone() },
        json,
    ];
    check(&first, &[zipped(2, &built(JSON, r#"{"a":1,"b":2}"#)), zipped(3, &reordered)], &others)
        .await;
    let text = built("text/plain", "a text");
    let boundary = "multipart/form-data; boundary=one";
    let form = built("multipart/form-data; boundary=two", parts("two", "text"));
    check(&zipped(1, &text), &[zipped(2, &text)], std::slice::from_ref(&text)).await;
    check(&zipped(1, &built(boundary, parts("one", "text"))), &[zipped(2, &form)], &[form]).await;
    let broken = Built { coding: Some("gzip"), ..text.clone() };
    check(&broken, &[], &[Built { body: b"a text ".to_vec(), ..broken.clone() }]).await;
    check(
        &Built { coding: Some("br"), ..text.clone() },
        &[],
        &[Built { coding: Some("br"), body: b"other".to_vec(), ..text }],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn large_bodies_are_compared_as_small_ones_are() {
    let members = (0..12_000).map(|n| format!("\"m{n:05}\":{n}"));
    let mut members: Vec<_> = members.collect();
    let forth = format!("{{{}}}", members.join(","));
    members.reverse();
    let back = format!("{{{}}}", members.join(","));
    assert!(forth.len() > 128 << 10);
    let first = built(JSON, &forth);
    let other = built(JSON, back.replace("\"m00007\":7", "\"m00007\":8"));
    check(&first, &[built(JSON, &back)], std::slice::from_ref(&other)).await;
    check(&zipped(1, &first), &[zipped(2, &built(JSON, &back))], &[zipped(1, &other)]).await;
    let other = built("text/plain", format!("{forth} "));
    check(&built("text/plain", &forth), &[], &[other]).await;
}

/// The runtime of this test has one thread. Where that compares large bodies itself, the second request
/// is not even looked at before the first is compared.
#[tokio::test]
async fn a_large_body_does_not_keep_others_of_its_thread_waiting() {
    let world = World::new();
    let members = (0..60_000).rev().map(|n| format!("\"m{n:05}\":{n}"));
    let large = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    let order = std::sync::Mutex::new(Vec::new());
    let large = async {
        let answer = send(&world, &built(JSON, &large)).await;
        order.lock().unwrap().push("large");
        answer.status
    };
    let small = async {
        let answer = world.send(keyed("/other"), "100").await;
        order.lock().unwrap().push("small");
        answer.status
    };
    assert_eq!(tokio::join!(biased; large, small), (201, 201));
    assert_eq!(*order.lock().unwrap(), ["small", "large"]);
}

#[tokio::test(start_paused = true)]
async fn two_accounts_under_one_key_do_not_hear_each_other() {
    for name in &ComparedHeaders::USUAL[2..] {
        let world = World::new();
        let for_account = |account: &str| keyed("/pay").header(*name, account);
        assert_eq!(world.send(for_account("one"), "100").await.status, 201);
        let other = world.send(for_account("two"), "100").await;
        other.check(422, "key-reused");
        assert_eq!(other.json()["differs"][0], "headers", "{name}");
        world.send(keyed("/pay"), "100").await.check(422, "key-reused");
        assert!(world.send(for_account("one"), "100").await.is_replay(), "{name}");
        assert_eq!(world.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_order_of_headers_does_not_tell_requests_apart_and_that_of_lines_does() {
    let names = ["x-b", "x-a"].map(http::HeaderName::from_static).to_vec();
    let compared_headers = ComparedHeaders::Named(names);
    let world = World::with(Protection { compared_headers, ..Protection::default() });
    let lines = |lines: &[(&'static str, &'static str)]| {
        lines.iter().fold(keyed("/pay"), |request, (name, value)| request.header(*name, *value))
    };
    world.send(lines(&[("x-a", "1"), ("x-b", "2"), ("x-b", "3")]), "100").await;
    assert!(
        world.send(lines(&[("x-b", "2"), ("x-a", "1"), ("x-b", "3")]), "100").await.is_replay()
    );
    for other in [
        &[("x-a", "1"), ("x-b", "3"), ("x-b", "2")][..],
        &[("x-a", "2"), ("x-b", "1"), ("x-b", "3")],
        &[("x-a", "1"), ("x-b", "2")],
    ] {
        world.send(lines(other), "100").await.check(422, "key-reused");
    }
}
