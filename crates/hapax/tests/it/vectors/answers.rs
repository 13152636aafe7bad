//! What a client does with an answer.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::Duration,
};

use hapax::{
    retry::{Backoff, Jitter, Schedule},
    tower::{
        Body,
        client::{RetryLayer, RetryOptions, Tried},
    },
};
use http::{Request, Response};
use serde_json::{Value, json};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::check;

type Headers = &'static [(&'static str, &'static str)];

const PROBLEM: (&str, &str) = ("content-type", "application/problem+json");

const ANSWERS: &[(u16, Headers)] = &[
    (200, &[]),
    (201, &[("idempotent-replayed", "true")]),
    (204, &[]),
    (303, &[]),
    (304, &[]),
    (301, &[]),
    (302, &[]),
    (307, &[]),
    (308, &[]),
    (400, &[]),
    (401, &[]),
    (403, &[]),
    (404, &[]),
    (409, &[]),
    (409, &[PROBLEM, ("hapax-refusal", "key-in-flight")]),
    (409, &[("stripe-should-retry", "true")]),
    (409, &[PROBLEM, ("hapax-refusal", "outcome-in-doubt")]),
    (409, &[PROBLEM, ("hapax-refusal", "response-not-retained")]),
    (410, &[PROBLEM, ("hapax-refusal", "key-gone")]),
    (410, &[]),
    (422, &[PROBLEM, ("hapax-refusal", "key-reused")]),
    (422, &[]),
    (408, &[]),
    (425, &[]),
    (429, &[]),
    (402, &[("stripe-should-retry", "true")]),
    (500, &[]),
    (500, &[("idempotent-replayed", "true")]),
    (500, &[("stripe-should-retry", "false")]),
    (501, &[]),
    (502, &[]),
    (503, &[]),
    (503, &[PROBLEM, ("hapax-refusal", "store-unavailable")]),
    (503, &[PROBLEM, ("hapax-refusal", "overloaded")]),
    (503, &[PROBLEM, ("hapax-refusal", "shutting-down")]),
    (503, &[PROBLEM, ("hapax-refusal", "transaction-rolled-back")]),
    (504, &[]),
    (504, &[PROBLEM, ("hapax-refusal", "deadline-passed")]),
    (505, &[]),
    // Marked like one of ours, and no problem document.
    (503, &[("hapax-refusal", "overloaded")]),
];

#[tokio::test]
async fn an_answer_means_the_same_to_every_client() {
    let mut cases = Vec::new();
    for &(status, headers) in ANSWERS {
        let repeated = pursue(&[(status, headers), (200, &[])]).await.attempts > 1;
        let last = pursue(&[(status, headers)]).await.conclusion.to_string();
        let after_silence = pursue(&[SILENCE, (status, headers)]).await.conclusion.to_string();
        cases.push(json!({
            "status": status, "headers": headers.iter().map(|(name, value)| (name.to_string(), Value::from(*value)))
                .collect::<serde_json::Map<_, _>>(),
            "repeat": repeated, "conclusion": last, "conclusion_after_silence": after_silence,
        }));
    }
    let about = "An answer to a request with a key: whether it is sent again; what it comes to if this is the last answer, \
                 and if an attempt before it was never answered.";
    check("answers.json", about, &cases);
}

/// An attempt that nobody answers.
const SILENCE: (u16, Headers) = (0, &[]);

/// What comes of a request that is answered so, and with the last of these from then on.
async fn pursue(answers: &[(u16, Headers)]) -> Tried {
    let waiting: Arc<Mutex<Vec<_>>> = Arc::new(Mutex::new(answers.iter().rev().copied().collect()));
    let server = service_fn(move |_: Request<Body>| {
        let mut waiting = waiting.lock().unwrap();
        let (status, headers) = if waiting.len() > 1 { waiting.pop().unwrap() } else { waiting[0] };
        async move {
            if status == 0 {
                std::future::pending::<()>().await;
            }
            let mut response = Response::builder().status(status);
            for (name, value) in headers {
                response = response.header(*name, *value);
            }
            Ok::<_, Infallible>(response.body(Body::empty()).unwrap())
        }
    });
    let backoff = Backoff {
        jitter: Jitter::Full,
        base: Duration::from_millis(1),
        cap: Duration::from_millis(2),
    };
    let options = RetryOptions {
        schedule: Schedule::new(backoff, 3).unwrap(),
        deadline: Duration::from_millis(600),
        attempt_timeout: Duration::from_millis(150),
        ..RetryOptions::default()
    };
    let client = RetryLayer::new(options).unwrap().layer(server);
    let request = Request::post("http://api.test/payments").body(Body::empty()).unwrap();
    match client.oneshot(request).await {
        Ok(response) => response.extensions().get::<Tried>().unwrap().clone(),
        Err(error) => panic!("it came to {error}"),
    }
}
