//! What receivers answer, and what becomes of events then.

use std::time::Duration;

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::AUTHORIZATION},
    response::IntoResponse,
};
use hapax_messaging::sink::{
    Outage, Sink, Verdict,
    webhook::{InvalidWebhook, Secret, Webhook, WebhookOptions},
};

use super::receiver::{Receiver, SECRET};
use crate::sink::world::{World, event, turns, with_header};

async fn answered(status: u16, headers: &'static [(&str, &str)]) -> Result<Verdict, Outage> {
    let receiver = Receiver::start();
    receiver.answer(move || {
        let status = StatusCode::from_u16(status).unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        (status, HeaderMap::from_iter(headers), "because\tof\nit").into_response()
    });
    let mut verdicts = receiver.sink().await.send(&turns("orders", 1, 1)).await?;
    assert_eq!(verdicts.len(), 1);
    Ok(verdicts.remove(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_answers_decides_about_the_event() {
    for status in [200, 201, 202, 204, 299] {
        assert_eq!(answered(status, &[]).await.unwrap(), Verdict::Taken, "{status}");
    }
    for status in [400, 404, 405, 413, 415, 422, 451] {
        let verdict = answered(status, &[]).await.unwrap();
        let told = matches!(&verdict, Verdict::Refused(why) if why.contains(&status.to_string())
            && why.contains("because of it"));
        assert!(told, "{status}: {verdict:?}");
    }
    for status in [403, 408, 409, 425, 500, 502, 504] {
        let verdict = answered(status, &[]).await.unwrap();
        assert!(matches!(verdict, Verdict::Missed(_)), "{status}: {verdict:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_answers_decides_about_the_destination() {
    for status in [301, 308, 401, 410] {
        let outage = answered(status, &[("location", "/elsewhere")]).await.unwrap_err();
        assert!(outage.needs_somebody(), "{status}");
    }
    for status in [302, 307, 429, 503] {
        let outage = answered(status, &[]).await.unwrap_err();
        assert!(!outage.needs_somebody(), "{status}");
        assert_eq!(outage.pause(), None, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_is_left_alone_for_as_long_as_it_asks() {
    let seconds = answered(503, &[("retry-after", "120")]).await.unwrap_err();
    assert_eq!(seconds.pause(), Some(Duration::from_secs(120)));
    let endless = answered(429, &[("retry-after", "99999999")]).await.unwrap_err();
    assert_eq!(endless.pause(), Some(Duration::from_secs(3600)));
    let date = answered(429, &[("retry-after", "Fri, 31 Dec 2094 23:59:59 GMT")]).await;
    assert_eq!(date.unwrap_err().pause(), Some(Duration::from_secs(3600)));
    let past = answered(429, &[("retry-after", "Thu, 01 Jan 1998 00:00:00 GMT")]).await;
    assert_eq!(past.unwrap_err().pause(), None);
    let nonsense = answered(503, &[("retry-after", "soon")]).await.unwrap_err();
    assert_eq!(nonsense.pause(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_has_the_same_key() {
    let receiver = Receiver::start();
    let (sink, events) = (receiver.sink().await, turns("orders", 1, 1));
    for _ in 0..2 {
        assert_eq!(sink.send(&events).await.unwrap(), [Verdict::Taken]);
    }
    let taken = receiver.taken();
    let keys: Vec<_> = taken.iter().map(|taken| taken.header("idempotency-key")).collect();
    assert_eq!(keys, vec![format!("\"{}\"", events[0].id); 2]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_does_not_answer_misses_the_event_and_nothing_behind_it_is_sent() {
    let receiver = Receiver::start();
    receiver.hold(true);
    let verdicts = receiver.sink().await.send(&turns("orders", 1, 2)).await.unwrap();
    assert!(matches!(verdicts[0], Verdict::Missed(_)), "{verdicts:?}");
    assert_eq!(verdicts[1], Verdict::Behind);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_of_ours_is_not_replaced_by_an_events() {
    let receiver = Receiver::start();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer ours"))]);
    let options = WebhookOptions { headers, ..WebhookOptions::default() };
    let secrets = vec![Secret::parse(SECRET).unwrap()];
    let sink = Webhook::new(&receiver.address(), secrets, options).unwrap();
    let mut posing = event("orders", "key", "1");
    let names = ["Authorization", "webhook-id", "Webhook-Signature", "Host", "Content-Length"];
    for name in names {
        posing = with_header(posing, name, "theirs");
    }
    assert_eq!(sink.send(&[posing]).await.unwrap(), [Verdict::Taken]);
    let taken = receiver.taken();
    assert_eq!(taken[0].header("authorization"), "Bearer ours");
    for name in names {
        assert_eq!(taken[0].headers.get_all(name).iter().count(), 1, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_http_cannot_carry_is_refused() {
    let receiver = Receiver::start();
    let sink = receiver.sink().await;
    let name = with_header(event("orders", "name", "1"), "not a name", "1");
    let value = with_header(event("orders", "value", "1"), "value", "two\nlines");
    let mut kind = event("orders", "kind", "1");
    kind.content_type = "text/plain\r\nx: y".to_owned();
    for verdict in sink.send(&[name, value, kind]).await.unwrap() {
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }
    assert!(receiver.taken().is_empty());
}

#[test]
fn a_webhook_without_a_secret_or_with_another_address_is_none() {
    let new = |address, secrets| Webhook::new(address, secrets, WebhookOptions::default());
    let secrets = || vec![Secret::parse(SECRET).unwrap()];
    assert!(matches!(new("https://example.com/", vec![]), Err(InvalidWebhook::NoSecret)));
    for address in ["ftp://example.com/", "example.com", ""] {
        assert!(matches!(new(address, secrets()), Err(InvalidWebhook::Address)), "{address}");
    }
    assert!(new("https://example.com/", secrets()).is_ok());
}
