//! Upstreams that do not keep to the rules.

use tokio::io::AsyncReadExt;

use crate::world::{Connection, Raw, Setup, ask, post, until};

const POISON: &str = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";

/// What the upstream says on the path of this row's name, as the gateway's client hears it.
async fn start(rows: &'static [(&'static str, &'static str)]) -> Raw {
    Raw::start(|head| {
        let path = head.split(' ').nth(1).unwrap();
        let said = rows.iter().find(|(name, _)| path.contains(name));
        said.map_or_else(
            || b"HTTP/1.1 201 Created\r\ncontent-length: 4\r\n\r\ngood".to_vec(),
            |(_, bytes)| bytes.replace("POISON", POISON).into_bytes(),
        )
    })
    .await
}

#[tokio::test]
async fn an_answer_that_is_not_one_is_in_doubt_and_never_repeated() {
    const ROWS: &[(&str, &str)] = &[
        (
            "switching",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        ),
        ("bad-chunk", "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nten\r\n"),
        ("short", "HTTP/1.1 201 Created\r\ncontent-length: 9\r\nconnection: close\r\n\r\nten"),
        (
            "cut-chunk",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\
                       connection: close\r\n\r\n9\r\nten",
        ),
        (
            "no-end",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\
                    connection: close\r\n\r\n3\r\nten\r\n",
        ),
        ("half-head", "HTTP/1.1 201 Created\r\nconnection: close\r\nx"),
        ("other-language", "220 mail.example ESMTP\r\nconnection: close\r\n\r\n"),
        (
            "two-lengths",
            "HTTP/1.1 201 Created\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nten",
        ),
        ("control", "HTTP/1.1 201 Created\r\nx: a\x01b\r\ncontent-length: 3\r\n\r\nten"),
        (
            "zipped",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: gzip\r\nconnection: close\r\n\r\nten",
        ),
        (
            "zip-in-chunks",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: gzip, chunked\r\n\r\n3\r\nten\r\n0\r\n\r\n",
        ),
        (
            "almost-chunked",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: xchunked\r\nconnection: close\r\n\r\n\
             3\r\nten\r\n0\r\n\r\n",
        ),
        (
            "then-identity",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked, identity\r\n\
             connection: close\r\n\r\n3\r\nten\r\n0\r\n\r\n",
        ),
        ("no-coding", "HTTP/1.1 201 Created\r\ntransfer-encoding:\r\nconnection: close\r\n\r\nten"),
    ];
    let upstream = start(ROWS).await;
    let gateway = Setup::new(upstream.address).start().await;
    for (number, (name, _)) in ROWS.iter().enumerate() {
        let request = post(&format!("/{name}"), "k", "ten");
        let first = ask(gateway.address, &request).await.unwrap();
        let code = first.code();
        assert_eq!((first.status, code.as_deref()), (502, Some("execution-unanswered")), "{name}");
        let again = ask(gateway.address, &request).await.unwrap();
        let code = again.code();
        assert_eq!((again.status, code.as_deref()), (409, Some("outcome-in-doubt")), "{name}");
        assert_eq!(upstream.heads().len(), number + 1, "{name}");
    }
}

#[tokio::test]
async fn what_follows_an_answer_is_never_taken_for_the_next_one() {
    const ROWS: &[(&str, &str)] = &[
        ("no-content", "HTTP/1.1 204 No Content\r\n\r\nPOISON"),
        ("no-content-length", "HTTP/1.1 204 No Content\r\ncontent-length: 51\r\n\r\nPOISON"),
        ("not-modified", "HTTP/1.1 304 Not Modified\r\n\r\nPOISON"),
        ("longer", "HTTP/1.1 201 Created\r\ncontent-length: 2\r\n\r\nokPOISON"),
        (
            "after-chunks",
            "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nPOISON",
        ),
    ];
    let upstream = start(ROWS).await;
    let gateway = Setup::new(upstream.address).config("workers = 1").start().await;
    for (name, _) in ROWS {
        let poisoned = ask(gateway.address, post(&format!("/{name}"), "k", "ten")).await.unwrap();
        assert!(!poisoned.text().contains("poison"), "{name}: {poisoned:?}");
        for number in 0..5 {
            let request = post("/good", &format!("{name}-{number}"), "ten");
            let next = ask(gateway.address, request).await.unwrap();
            assert_eq!((next.status, next.text()), (201, "good"), "{name}");
        }
    }
}

#[tokio::test]
async fn hints_before_an_answer_do_not_count() {
    let storm = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(100);
    let answer = format!("{storm}HTTP/1.1 201 Created\r\ncontent-length: 3\r\n\r\nten");
    let upstream = Raw::start(move |_| answer.clone().into_bytes()).await;
    let gateway = Setup::new(upstream.address).start().await;
    for replayed in [false, true] {
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!((answer.status, answer.text(), answer.is_replay()), (201, "ten", replayed));
    }
}

#[tokio::test]
async fn what_belongs_to_one_connection_or_person_is_not_replayed() {
    let upstream = Raw::start(|_| {
        b"HTTP/1.1 201 Created\r\nset-cookie: session=alice\r\nconnection: x-own\r\nx-own: 1\r\n\
          keep-alive: timeout=5\r\nx-kept: 1\r\nidempotent-replayed: true\r\nhapax-fence: 7\r\n\
          transfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n3\r\nten\r\n0\r\nx-sum: 1\r\n\r\n"
            .to_vec()
    })
    .await;
    let gateway = Setup::new(upstream.address).start().await;
    for replayed in [false, true] {
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!((answer.status, answer.text(), answer.is_replay()), (201, "ten", replayed));
        assert_eq!(answer.header("x-kept"), Some("1"));
        assert_eq!(answer.header("set-cookie").is_some(), !replayed);
        for name in ["x-own", "keep-alive", "hapax-fence", "trailer", "x-sum"] {
            assert_eq!(answer.header(name), None, "{name}");
        }
    }
}

#[tokio::test]
async fn an_answer_too_large_to_keep_is_passed_on_once_and_never_run_again() {
    let large = "x".repeat(1 << 20);
    let answer = format!("HTTP/1.1 201 Created\r\ncontent-length: {}\r\n\r\n{large}", large.len());
    let upstream = Raw::start(move |_| answer.clone().into_bytes()).await;
    let config = "[defaults]\nresponse_max = \"1KiB\"\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    let first = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((first.status, first.body.len()), (201, 1 << 20));
    // Its last byte may arrive before the end of it is recorded.
    until("the end to be recorded", async || {
        let again = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!(again.status, 409);
        again.code().as_deref() == Some("response-not-retained")
    })
    .await;
    assert_eq!(upstream.heads().len(), 1);
}

/// Node refuses a list of lengths, and other servers and clients a second line.
#[tokio::test]
async fn a_length_that_is_said_twice_reaches_the_client_once() {
    const ROWS: &[(&str, &str)] = &[
        ("lines", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\ncontent-length: 4\r\n\r\n"),
        ("list", "HTTP/1.1 200 OK\r\ncontent-length: 4, 4\r\n\r\n"),
    ];
    let upstream = start(ROWS).await;
    let gateway = Setup::new(upstream.address).start().await;
    for (name, _) in ROWS {
        let mut connection = Connection::open(gateway.address).await;
        let head = format!("HEAD /{name} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        connection.send(head).await;
        let mut answer = String::new();
        connection.socket().read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{name}: {answer:?}");
        let lengths: Vec<_> =
            answer.lines().filter(|line| line.starts_with("content-length")).collect();
        assert_eq!(lengths, ["content-length: 4"], "{name}: {answer:?}");
    }
}

#[tokio::test]
async fn how_much_of_a_head_is_read_is_a_setting_and_more_is_a_doubt() {
    let lines: String = (0..200).map(|number| format!("x-{number}: 1\r\n")).collect();
    let answer = format!("HTTP/1.1 201 Created\r\n{lines}content-length: 3\r\n\r\nten");
    let upstream = Raw::start(move |_| answer.clone().into_bytes()).await;
    for (config, first, later) in [
        // More headers than are stored with an answer, but not than are read.
        ("", None, "response-not-retained"),
        ("answer_headers = 100\n", Some("execution-unanswered"), "outcome-in-doubt"),
        ("answer_head = \"8KiB\"\n", None, "response-not-retained"),
    ] {
        let sent = upstream.heads().len();
        let config = format!("[upstream]\n{config}");
        let gateway = Setup::new(upstream.address).config(&config).start().await;
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!(answer.code().as_deref(), first, "{config}: {answer:?}");
        until("the end to be recorded", async || {
            let again = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
            assert_eq!(again.status, 409, "{config}");
            again.code().as_deref() == Some(later)
        })
        .await;
        assert_eq!(upstream.heads().len(), sent + 1, "{config}");
    }
}
