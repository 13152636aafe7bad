//! What may be written down.

use bytes::Bytes;
use hapax_client::journal::{
    Begin, InvalidJournalRequest, Journal, JournalCredentials, JournalError, JournalOptions,
    JournalRequest, Name, PursuitEnd, outcome,
};
use hapax_core::{Body, InvalidName, Key};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

use super::bench::{Bench, DEADLINE, granted, name, wish};

fn post(
    url: &str,
    headers: HeaderMap,
    body: Bytes,
) -> Result<JournalRequest, InvalidJournalRequest> {
    let url = url.parse().expect("a URL");
    JournalRequest::new(Method::POST, url, headers, body, JournalCredentials::Withhold)
}

#[test]
fn a_name_is_1_to_255_visible_characters() {
    for good in ["a", "charge order/42", &"n".repeat(255)] {
        assert_eq!(Name::parse(good).expect("a name").as_str(), good);
    }
    assert!(matches!(Name::parse(""), Err(InvalidName::Empty { .. })));
    assert!(matches!(Name::parse("n".repeat(256)), Err(InvalidName::TooLong { .. })));
    for bad in ["a\nb", "a\0", "Bestellung-ä"] {
        assert!(matches!(Name::parse(bad), Err(InvalidName::NotVisible { .. })), "{bad:?}");
    }
}

#[test]
fn a_url_says_where_to_and_not_who() {
    let check = |url: &str, expected| {
        assert_eq!(post(url, HeaderMap::new(), Bytes::new()).err(), expected, "{url}");
    };
    check("http://localhost:8080", None);
    for url in ["/charges", "api.example.com:443", "ftp://api.example.com/charges"] {
        check(url, Some(InvalidJournalRequest::NotAbsolute));
    }
    check("https://me:secret@api.example.com/", Some(InvalidJournalRequest::Password));
    let long = format!("https://api.example.com/{}", "x".repeat(8 << 10));
    check(&long, Some(InvalidJournalRequest::UrlTooLong { len: long.len() }));
}

#[test]
fn headers_and_bodies_have_limits() {
    let mut headers = HeaderMap::new();
    headers.insert("x-large", HeaderValue::from_str(&"x".repeat(40 << 10)).expect("a value"));
    let refused = post("http://localhost/", headers, Bytes::new()).err();
    assert_eq!(refused, Some(InvalidJournalRequest::Headers { count: 1, len: (40 << 10) + 7 }));
    let body = Bytes::from(vec![0; (16 << 20) + 1]);
    let refused = post("http://localhost/", HeaderMap::new(), body).err();
    assert_eq!(refused, Some(InvalidJournalRequest::Body { len: (16 << 20) + 1, max: 16 << 20 }));
}

#[tokio::test]
async fn credentials_stay_out_of_the_file_and_are_known_to_be_missing() {
    let secret = "Bearer tok3n-of-somebody";
    for (credentials, expected) in
        [(JournalCredentials::Withhold, false), (JournalCredentials::Keep, true)]
    {
        let bench = Bench::new();
        let mut headers = HeaderMap::new();
        let names = ["authorization", "cookie", "proxy-authorization", "x-api-key", "x-auth-token"];
        for name in names {
            headers.insert(name, HeaderValue::from_static(secret));
        }
        let url = "http://localhost/".parse().expect("a URL");
        let request = JournalRequest::new(Method::POST, url, headers, Bytes::new(), credentials);
        let request = request.expect("within limits");
        let key = Key::parse("k-1").expect("a key");
        let journal = bench.journal();
        granted(&journal, Begin::new(name("charge"), key, request, DEADLINE)).await;
        let found = journal.find(&name("charge")).await.expect("read").expect("there").request;
        assert_eq!(found.headers().len(), if expected { names.len() } else { 0 });
        assert_eq!(found.withheld().len(), if expected { 0 } else { names.len() });
        drop(journal);
        let file = std::fs::read(bench.path()).expect("read");
        let written = file.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert_eq!(written, expected);
    }
}

#[test]
fn who_asks_does_not_make_it_another_request() {
    let with = |token: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static(token));
        let url = "http://localhost/".parse().expect("a URL");
        JournalRequest::new(Method::POST, url, headers, Bytes::new(), JournalCredentials::Keep)
            .expect("within limits")
    };
    assert_eq!(with("one").digest(), with("two").digest());
    let plain = post("http://localhost/", HeaderMap::new(), Bytes::new()).expect("within limits");
    assert_eq!(plain.digest(), with("one").digest());
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    let typed = post("http://localhost/", headers, Bytes::new()).expect("within limits");
    assert_ne!(typed.digest(), plain.digest());
}

#[tokio::test]
async fn a_body_over_this_journals_limit_is_refused_before_it_is_written() {
    let bench = Bench::new();
    let options = JournalOptions { request_bytes_max: 1, ..bench.options() };
    let journal = Journal::open(bench.path(), options).expect("it opens");
    let error = journal.begin(wish("charge", "k-1")).await.expect_err("it is refused");
    assert!(matches!(error, JournalError::TooLarge { len: 2, max: 1, .. }), "{error:?}");
    assert_eq!(journal.find(&name("charge")).await.expect("read"), None);
}

#[tokio::test]
async fn of_an_answer_over_the_limit_the_length_is_kept() {
    let bench = Bench::new();
    let options = JournalOptions { answer_bytes_max: 4, ..bench.options() };
    let journal = Journal::open(bench.path(), options).expect("it opens");
    for (text, body, expected) in [
        ("small", "1234", Body::Kept(Bytes::from_static(b"1234"))),
        ("large", "12345", Body::NotKept { len: 5 }),
    ] {
        let hold = granted(&journal, wish(text, "k")).await.hold;
        let answer = outcome(StatusCode::CREATED, &HeaderMap::new(), Bytes::from(body));
        journal.settle(&hold, 1, PursuitEnd::Done(answer)).await.expect("answered");
        let found = journal.find(&name(text)).await.expect("read").expect("there");
        assert_eq!(found.state.answer().expect("an answer").body(), &expected);
    }
}

#[test]
fn of_too_many_headers_as_many_are_kept_as_fit() {
    let mut headers = HeaderMap::new();
    for number in 0..200 {
        headers.append("x-many", HeaderValue::from(number));
    }
    let kept = outcome(StatusCode::OK, &headers, Bytes::new());
    assert_eq!(kept.headers().len(), 128);
    headers.insert("x-many", HeaderValue::from_str(&"x".repeat(40 << 10)).expect("a value"));
    headers.insert("x-small", HeaderValue::from_static("1"));
    let kept = outcome(StatusCode::OK, &headers, Bytes::new());
    assert_eq!(kept.headers().len(), 1);
}
