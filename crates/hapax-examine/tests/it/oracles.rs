//! Those who count effects: that they count right, and say in one sentence why they cannot.

use std::{net::SocketAddr, time::Duration};

use hapax_examine::{
    CountByCommand, CountByGet, EffectOracle, ExamRequest, HttpAddress, JsonPath, OracleLevel,
    ProbeLog, UpstreamConduct, UpstreamDouble, WebhookSink, Wire,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

fn command(command: &str, pointer: Option<&str>) -> CountByCommand {
    CountByCommand { command: command.to_owned(), pointer: pointer.map(JsonPath::new) }
}

async fn fault(oracle: &dyn EffectOracle) -> String {
    oracle.count("hpx-1").await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_command_counts_by_what_it_prints() {
    assert_eq!(command("echo ' 3 '", None).count("hpx-1").await.unwrap(), 3);
    let cat = command(r#"echo '{"rows":["{marker}","{marker}"]}'"#, Some("/rows"));
    assert_eq!(cat.count("hpx-1").await.unwrap(), 2);
    let both = command("printf '%s' '[\"{marker}\"]' | grep -o hpx-1 | wc -l", None);
    assert_eq!(both.count("hpx-1").await.unwrap(), 1);
    assert_eq!(cat.level(), OracleLevel::Counted);
}

#[tokio::test]
async fn a_command_that_fails_or_prints_nonsense_is_quoted() {
    for (text, pointer, expected) in [
        ("echo no such table >&2; exit 4", None, "ended with 4: no such table"),
        ("echo many", None, "printed `many` where a number was expected"),
        ("true", None, "printed nothing where a number was expected"),
        ("echo 1,", Some("/n"), "printed what is no JSON"),
        (r#"echo '{"m":1}'"#, Some("/n"), r#"there is no number and no array at `/n` in {"m":1}"#),
        ("kill -9 $$", None, "was ended by others"),
        ("echo -3", None, "printed `-3` where a number was expected"),
    ] {
        let said = fault(&command(text, pointer)).await;
        assert!(said.contains(expected), "{text}: {said}");
        assert!(
            said.starts_with("effects could not be counted: ") && !said.contains('\n'),
            "{said}"
        );
    }
    let said = command("echo 1", None).count("a; rm b").await.unwrap_err().to_string();
    assert!(said.contains("is nothing for a shell"), "{said}");
}

/// Answers each connection with the next of these, and then with the last of them.
async fn answering(answers: Vec<String>) -> HttpAddress {
    let listener = TcpListener::bind(HERE).await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for at in 0.. {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answers[at.min(answers.len() - 1)].as_bytes()).await;
        }
    });
    HttpAddress::parse(&format!("http://{address}/")).unwrap().0
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

async fn get(answers: Vec<String>) -> CountByGet {
    CountByGet {
        wire: Wire::new(&[]).unwrap(),
        address: answering(answers).await,
        path: "/payments?ref={marker}".to_owned(),
        headers: Vec::new(),
        pointer: JsonPath::new("/items"),
    }
}

#[tokio::test]
async fn a_get_counts_numbers_and_members_and_is_tried_once_more() {
    let two = answer("200 OK", r#"{"items":[1,2]}"#);
    let three = answer("200 OK", r#"{"items":3}"#);
    let broken = [String::new(), answer("503 Unavailable", "starting")];
    assert_eq!(get(vec![two.clone()]).await.count("hpx-1").await.unwrap(), 2);
    assert_eq!(get(vec![three]).await.count("hpx-1").await.unwrap(), 3);
    assert_eq!(get(vec![answer("404 None", "")]).await.count("hpx-1").await.unwrap(), 0);
    for failure in broken {
        assert_eq!(get(vec![failure, two.clone()]).await.count("hpx-1").await.unwrap(), 2);
    }
}

#[tokio::test]
async fn a_get_that_is_not_answered_with_a_count_says_why() {
    for (given, expected) in [
        (
            answer("500 Broken", "no\n database"),
            "/payments?ref=hpx-1 was answered with 500: no database",
        ),
        (answer("401 Who", ""), "wants to know who asks (401): give it credentials"),
        (answer("200 OK", "<html>"), "was answered with what is no JSON"),
        (answer("200 OK", r#"{"items":{}}"#), "there is no number and no array at `/items`"),
        (answer("302 Found", ""), "redirects (302) to another place"),
        (String::new(), "was not answered: closed by the server before anything came"),
    ] {
        let said = fault(&get(vec![given]).await).await;
        assert!(said.contains(expected) && !said.contains('\n'), "{said}");
    }
    let mut nobody = get(vec![String::new()]).await;
    nobody.address = HttpAddress::parse("http://127.0.0.1:1/").unwrap().0;
    assert!(fault(&nobody).await.contains("was not reached"));
}

/// Sends bytes in two pieces and reads what comes until the other side closes, or so many answers have come.
async fn sent(to: SocketAddr, bytes: &str, answers: usize) -> String {
    let mut stream = TcpStream::connect(to).await.unwrap();
    let (head, rest) = bytes.split_at(bytes.len() / 2);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(rest.as_bytes()).await.unwrap();
    let mut heard = Vec::new();
    // Each is JSON that ends with the first of these.
    while String::from_utf8_lossy(&heard).matches('}').count() < answers {
        if stream.read_buf(&mut heard).await.unwrap() == 0 {
            break;
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

fn post(body: &str, headers: &str) -> String {
    format!(
        "POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_sink_counts_every_webhook_that_arrives() {
    let sink = WebhookSink::listen(HERE).await.unwrap();
    let one = post(r#"{"ref":"hpx-1"}"#, "");
    assert!(sent(sink.address(), &one, 1).await.starts_with("HTTP/1.1 200"));
    // The same twice on one connection, one of them in chunks, and what is none of them.
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\"hpx\r\n3\r\n-1\"\r\n0\r\n\r\n";
    sent(sink.address(), &format!("{one}{chunked}"), 2).await;
    sent(sink.address(), &post("hpx-12", ""), 1).await;
    sent(sink.address(), "GET /hpx-1 HTTP/1.1\r\nHost: a\r\n\r\n", 1).await;
    assert_eq!(sink.count("hpx-1").await.unwrap(), 3);
    assert_eq!(sink.count("hpx-12").await.unwrap(), 1);
    assert_eq!(sink.count("hpx-2").await.unwrap(), 0);
    let times: Vec<_> = sink.arrivals("hpx-1").iter().map(|arrival| arrival.at).collect();
    assert!(times.is_sorted() && times.len() == 3);
    assert_eq!(sink.level(), OracleLevel::Received);
    assert!(sent(sink.address(), "nonsense\r\n\r\n", 1).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn a_client_that_waits_for_leave_is_given_it() {
    let sink = WebhookSink::listen(HERE).await.unwrap();
    let mut stream = TcpStream::connect(sink.address()).await.unwrap();
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut heard = [0; 25];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hpx-1").await.unwrap();
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(sink.count("hpx-1").await.unwrap(), 1);
}

#[tokio::test]
async fn the_upstream_counts_a_key_once_and_what_has_none_every_time() {
    let double = UpstreamDouble::listen(HERE, UpstreamConduct::default()).await.unwrap();
    let keyed = post("hpx-1", "Idempotency-Key: a\r\n");
    let first = sent(double.address(), &keyed, 1).await;
    assert!(first.starts_with("HTTP/1.1 201") && first.contains(r#""id":"upstream-1""#), "{first}");
    assert!(sent(double.address(), &keyed, 1).await.contains(r#""id":"upstream-1""#));
    assert_eq!(double.count("hpx-1").await.unwrap(), 1);
    sent(double.address(), &post("hpx-1", "Idempotency-Key: b\r\n"), 1).await;
    sent(double.address(), &post("{}", "X-Reference: hpx-1\r\n"), 1).await;
    sent(double.address(), &post("hpx-1", ""), 1).await;
    assert_eq!(double.count("hpx-1").await.unwrap(), 4);
    assert_eq!(double.level(), OracleLevel::Received);
}

#[tokio::test]
async fn the_upstream_acts_before_it_is_slow_and_before_it_drops_its_answer() {
    let delay = Duration::from_millis(200);
    let conduct = UpstreamConduct { delay, answers_dropped: 1, ..UpstreamConduct::default() };
    let double = UpstreamDouble::listen(HERE, conduct).await.unwrap();
    let keyed = post("hpx-1", "Idempotency-Key: a\r\n");
    assert_eq!(sent(double.address(), &keyed, 1).await, "");
    assert_eq!(double.count("hpx-1").await.unwrap(), 1);
    assert!(sent(double.address(), &keyed, 1).await.starts_with("HTTP/1.1 201"));
    assert_eq!(double.count("hpx-1").await.unwrap(), 1);
    // Long before its answer.
    let delay = Duration::from_secs(600);
    double.set_conduct(UpstreamConduct { delay, ..UpstreamConduct::default() });
    let to = double.address();
    let asking = tokio::spawn(async move { sent(to, &post("hpx-2", ""), 1).await });
    while double.count("hpx-2").await.unwrap() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(!asking.is_finished());
}

#[tokio::test]
async fn the_upstream_loses_one_answer_in_so_many_and_has_acted() {
    let conduct = UpstreamConduct { drops_one_in: Some(2), ..UpstreamConduct::default() };
    let double = UpstreamDouble::listen(HERE, conduct).await.unwrap();
    let mut answered = Vec::new();
    for number in 1..=4 {
        let heard = sent(double.address(), &post(&format!("hpx-{number}"), ""), 1).await;
        answered.push(!heard.is_empty());
        assert_eq!(double.count(&format!("hpx-{number}")).await.unwrap(), 1);
    }
    assert_eq!(answered, [true, false, true, false]);
    assert!(double.describe().ends_with("loses one answer in 2"), "{}", double.describe());
}

#[tokio::test]
async fn the_wire_and_the_sink_understand_each_other() {
    let sink = WebhookSink::listen(HERE).await.unwrap();
    let address = HttpAddress::parse(&format!("http://{}/", sink.address())).unwrap().0;
    let request = ExamRequest {
        method: "POST".to_owned(),
        ..ExamRequest::get("/hook", Vec::new()).with_body("hpx-1")
    };
    let wire = Wire::new(&[]).unwrap();
    let patience = Duration::from_secs(30);
    let exchange = wire.ask(&ProbeLog::begin(), "post", &address, &request, patience).await;
    assert_eq!(exchange.status(), Some(200));
    assert_eq!(sink.count("hpx-1").await.unwrap(), 1);
    drop(sink);
}
