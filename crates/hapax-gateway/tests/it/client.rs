//! The client of the upstream, against an upstream made of bytes.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

use std::convert::Infallible;

use bytes::Bytes;
use hapax_gateway::{
    client::{SendError, UpstreamClient},
    config::{Protocol, Upstream},
};
use hapax_tower::Body;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
/// More than the sockets of both sides take.
const LARGE: usize = 32 << 20;

async fn start() -> (TcpListener, UpstreamClient) {
    start_with(|upstream| upstream).await
}

async fn start_with(config: impl FnOnce(Upstream) -> Upstream) -> (TcpListener, UpstreamClient) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = UpstreamClient::new(&config(Upstream::at(url.parse().unwrap()))).unwrap();
    (listener, client)
}

async fn pay(client: &UpstreamClient, bytes: usize) -> Bytes {
    let request = Request::post("/pay").header("host", "shop.example");
    let request = request.body(Body::from(Bytes::from(vec![b'x'; bytes]))).unwrap();
    client.send(request).await.unwrap().collect().await.unwrap().to_bytes()
}

/// Reads a head, and says how many bytes came after it.
async fn head(connection: &mut TcpStream) -> usize {
    let mut read = Vec::new();
    loop {
        assert_ne!(connection.read_buf(&mut read).await.unwrap(), 0);
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            return read.len() - end - 4;
        }
    }
}

#[tokio::test]
async fn a_request_that_is_answered_early_is_still_sent_to_its_end() {
    let (listener, client) = start().await;
    let upstream = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut read = head(&mut connection).await;
        connection.write_all(OK).await.unwrap();
        let mut buffer = vec![0; 64 << 10];
        while read < LARGE {
            let more = connection.read(&mut buffer).await.unwrap();
            assert_ne!(more, 0, "the upload was cut off");
            read += more;
        }
        read
    };
    let (answer, read) = tokio::join!(pay(&client, LARGE), upstream);
    assert_eq!((&*answer, read), (&b"ok"[..], LARGE));
}

#[tokio::test]
async fn an_unused_connection_is_dropped_when_the_upstream_closes_it() {
    let (listener, client) = start().await;
    let upstream = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        head(&mut connection).await;
        connection.write_all(OK).await.unwrap();
        connection
    };
    let (answer, mut connection) = tokio::join!(pay(&client, 0), upstream);
    assert_eq!(&*answer, b"ok");
    connection.shutdown().await.unwrap();
    assert_eq!(connection.read(&mut [0; 1]).await.unwrap(), 0, "the client closed it too");
}

/// What a client makes of these bytes, which an upstream sends all at once or one by one before it
/// closes.
async fn answered(method: &str, bytes: &[u8], one_by_one: bool) -> Option<Bytes> {
    heard(start().await, method, bytes, one_by_one).await.ok().map(Response::into_body)
}

async fn heard(
    (listener, client): (TcpListener, UpstreamClient),
    method: &str,
    bytes: &[u8],
    one_by_one: bool,
) -> Result<Response<Bytes>, SendError> {
    let upstream = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        head(&mut connection).await;
        let pieces = if one_by_one { 1 } else { bytes.len().max(1) };
        for piece in bytes.chunks(pieces) {
            // A client that has refused the beginning does not read the rest.
            if connection.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        connection.shutdown().await.ok();
        connection
    };
    let asking = async {
        let request = Request::builder().method(method).uri("/pay").header("host", "shop.example");
        let sent = client.send(request.body(Body::from(Bytes::new())).unwrap()).await?;
        let (head, body) = sent.into_parts();
        let body = body.collect().await.map_err(SendError::Unanswered)?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let (answer, _connection) = tokio::join!(asking, upstream);
    answer
}

#[tokio::test]
async fn an_answer_is_the_same_however_its_bytes_come() {
    let right: [(&str, &[u8], &[u8]); 9] = [
        ("POST", OK, b"ok"),
        ("POST", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        ("POST", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n", b""),
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", b""),
        ("POST", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\ncontent-length: 1\r\n\r\na", b"a"),
        ("POST", b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\ncontent-length: 2\r\n\r\nok", b"ok"),
        ("POST", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n0\r\n\r\n", b"abc"),
        ("POST", b"HTTP/1.1 200 OK\r\ntransfer-encoding: , Chunked\r\ncontent-length: 9\r\n\r\n1\r\na\r\n0\r\n\r\n", b"a"),
        ("POST", b"HTTP/1.0 200 OK\r\n\r\nuntil it closes", b"until it closes"),
    ];
    for (method, bytes, body) in right {
        for one_by_one in [false, true] {
            let answer = answered(method, bytes, one_by_one).await;
            let said = bytes.escape_ascii();
            assert_eq!(answer.as_deref(), Some(body), "{said}, one by one: {one_by_one}");
        }
    }
}

#[tokio::test]
async fn what_is_no_whole_answer_is_an_error() {
    let wrong: [&[u8]; 17] = [
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-le",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nzipped",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, identity\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding:\r\ncontent-length: 1\r\n\r\na",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\ncontent-length: 1\r\n\r\na",
    ];
    for bytes in wrong {
        for one_by_one in [false, true] {
            let answer = answered("POST", bytes, one_by_one).await;
            assert_eq!(answer, None, "{}, one by one: {one_by_one}", bytes.escape_ascii());
        }
    }
}

#[tokio::test]
async fn bytes_nobody_asked_for_answer_nobody() {
    let twice = [OK, b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"].concat();
    let both = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 2\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    for bytes in [&twice[..], both] {
        let (listener, client) = start().await;
        let upstream = async {
            let (mut first, _) = listener.accept().await.unwrap();
            head(&mut first).await;
            first.write_all(bytes).await.unwrap();
            let mut buffer = [0; 1];
            let (mut second, _) = listener.accept().await.unwrap();
            head(&mut second).await;
            second.write_all(OK).await.unwrap();
            assert_eq!(
                first.read(&mut buffer).await.unwrap_or(0),
                0,
                "the connection was used again"
            );
        };
        let asking = async { (pay(&client, 1).await, pay(&client, 1).await) };
        let ((one, two), ()) = tokio::join!(asking, upstream);
        assert_eq!((&*one, &*two), (&b"ok"[..], &b"ok"[..]), "{}", bytes.escape_ascii());
    }
}

/// The next reader would decide for itself what a list, or a second line, means.
#[tokio::test]
async fn a_length_is_passed_on_as_one_number_or_not_at_all() {
    let head = |lengths: &str| format!("HTTP/1.1 200 OK\r\n{lengths}\r\n");
    for (method, lengths, passed_on) in [
        ("HEAD", "content-length: 4\r\ncontent-length: 4\r\n", Some("4")),
        ("HEAD", "content-length: 4, 4\r\n", Some("4")),
        ("HEAD", "content-length: 4\r\n", Some("4")),
        ("HEAD", "", None),
        ("POST", "content-length: 0 ,0\r\n", Some("0")),
        ("HEAD", "transfer-encoding: chunked\r\ncontent-length: 4\r\n", None),
    ] {
        let answer = heard(start().await, method, head(lengths).as_bytes(), false).await.unwrap();
        let lines: Vec<_> = answer.headers().get_all("content-length").iter().collect();
        assert_eq!(lines, passed_on.into_iter().collect::<Vec<_>>(), "{method} {lengths:?}");
    }
    for lengths in ["content-length: 4\r\ncontent-length: 5\r\n", "content-length: 4, x\r\n"] {
        let answer = heard(start().await, "HEAD", head(lengths).as_bytes(), false).await;
        assert!(answer.is_err(), "{lengths:?}");
    }
    let nothing = b"HTTP/1.1 204 No Content\r\ncontent-length: 4, 5\r\n\r\n";
    let answer = heard(start().await, "POST", nothing, false).await.unwrap();
    assert!(answer.headers().is_empty(), "the effect is not in doubt: {answer:?}");
}

#[tokio::test]
async fn a_head_is_read_up_to_what_is_configured() {
    let with_headers = |count: usize| {
        let lines: String = (0..count).map(|number| format!("x-{number}: 1\r\n")).collect();
        format!("HTTP/1.1 200 OK\r\n{lines}\r\n")
    };
    let with_bytes = |bytes: usize| {
        let start = "HTTP/1.1 200 OK\r\nx: ";
        format!("{start}{}\r\n\r\n", "x".repeat(bytes - start.len() - 4))
    };
    let (usual, small) = ((400 << 10, 256), (8 << 10, 3));
    for ((head, headers), said, is_read) in [
        (usual, with_headers(256), true),
        (usual, with_headers(257), false),
        (usual, with_bytes(400 << 10), true),
        (usual, with_bytes((400 << 10) + 1), false),
        (small, with_headers(3), true),
        (small, with_headers(4), false),
        (small, with_bytes(8 << 10), true),
        (small, with_bytes((8 << 10) + 1), false),
        ((1 << 20, 1000), with_headers(1000), true),
        ((1 << 20, 1000), with_bytes(1 << 20), true),
    ] {
        let started = start_with(|upstream| Upstream {
            answer_head_bytes_max: head,
            answer_headers_max: headers,
            ..upstream
        });
        let answer = heard(started.await, "HEAD", said.as_bytes(), false).await;
        let length = said.len();
        assert_eq!(answer.is_ok(), is_read, "{length} bytes: {answer:?}");
        if let Err(SendError::NothingSent(why)) = answer {
            panic!("it was sent: {why}");
        }
    }
}

/// Whoever drives an HTTP/2 connection passes headers on as they came.
#[tokio::test]
async fn a_length_that_an_http2_upstream_says_twice_is_passed_on_once() {
    for (lengths, passed_on) in [(["4", "4"], Some("4")), (["4", "5"], None)] {
        let (listener, client) =
            start_with(|upstream| Upstream { protocol: Protocol::Http2, ..upstream }).await;
        let serving = async {
            let (connection, _) = listener.accept().await.unwrap();
            let answer = service_fn(|_: Request<Incoming>| async move {
                let [one, other] = lengths;
                let answer = Response::builder();
                let answer = answer.header("content-length", one).header("content-length", other);
                Ok::<_, Infallible>(answer.body(Empty::<Bytes>::new()).unwrap())
            });
            let server = auto::Builder::new(TokioExecutor::new());
            server.serve_connection(TokioIo::new(connection), answer).await.unwrap();
        };
        let asking = async {
            let request = Request::head("/pay").header("host", "shop.example");
            client.send(request.body(Body::empty()).unwrap()).await
        };
        let answer = tokio::select! {
            answer = asking => answer,
            () = serving => panic!("the connection ended early"),
        };
        match (answer, passed_on) {
            (Ok(answer), Some(one)) => {
                let lines: Vec<_> = answer.headers().get_all("content-length").iter().collect();
                assert_eq!(lines, [one]);
            }
            (Err(SendError::Unanswered(_)), None) => {}
            (answer, _) => panic!("{lengths:?}: {answer:?}"),
        }
    }
}
