//! What is kept to be sent again has a limit, and what is larger is said or streamed.

use bytes::Bytes;
use futures_util::stream;
use hapax_core::retry::Conclusion;
use hapax_tower::{
    Body, BoxError,
    client::{InvalidRequest, Keys, RetryError, RetryOptions},
};
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};

use super::script::{Destination, Reply, post, said, text, tried};

/// A body that does not say how long it is.
fn pieces(pieces: &[&'static str]) -> Body {
    let frames: Vec<_> =
        pieces.iter().map(|piece| Ok::<_, BoxError>(Frame::data(Bytes::from(*piece)))).collect();
    Body::new(StreamBody::new(stream::iter(frames)))
}

fn at_most(request_bytes_max: usize, response_bytes_max: usize) -> RetryOptions {
    RetryOptions { request_bytes_max, response_bytes_max, ..RetryOptions::default() }
}

fn request(body: Body) -> Request<Body> {
    post().map(|_| body)
}

#[tokio::test(start_paused = true)]
async fn a_body_over_the_limit_is_refused_before_anything_is_sent() {
    let destination = Destination::new(|_| said(200));
    for body in [Body::from(Bytes::from("123456")), pieces(&["123", "456"])] {
        let error = destination.ask(at_most(5, 100), request(body)).await.unwrap_err();
        let RetryError::Invalid(InvalidRequest::TooLarge { bytes_max: 5 }) = error else {
            panic!("{error:?}")
        };
    }
    assert_eq!(destination.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_body_up_to_the_limit_is_sent_whole_with_every_attempt() {
    for body in [Body::from(Bytes::from("12345")), pieces(&["12", "", "34", "5"])] {
        let destination = Destination::new(|nth| if nth == 1 { Reply::Reset } else { said(200) });
        destination.ask(at_most(5, 100), request(body)).await.unwrap();
        assert_eq!(destination.each(|seen| seen.body.clone()), ["12345", "12345"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_fails_is_never_sent() {
    let destination = Destination::new(|_| said(200));
    let broken = [Ok(Frame::data(Bytes::from("1"))), Err(BoxError::from("the disk is gone"))];
    let body = Body::new(StreamBody::new(stream::iter(broken)));
    let error = destination.ask(RetryOptions::default(), request(body)).await.unwrap_err();
    assert!(matches!(error, RetryError::Invalid(InvalidRequest::Body(_))), "{error:?}");
    assert_eq!(destination.asked(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_only_once_has_no_limit() {
    let destination = Destination::new(|_| said(200));
    let options = RetryOptions { keys: Keys::OnlyGiven, ..at_most(5, 100) };
    destination.ask(options, request(pieces(&["123", "456"]))).await.unwrap();
    assert_eq!(destination.each(|seen| seen.body.clone()), ["123456"]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_is_handed_on_whole_as_it_comes() {
    for body in [|| pieces(&["12", "34", "56"]), || Body::from(Bytes::from("123456"))] {
        let destination = Destination::new(move |_| Reply::Said(Response::new(body())));
        let answered = destination.ask(at_most(100, 3), post()).await;
        assert_eq!(tried(&answered).conclusion, Conclusion::Done);
        assert_eq!(text(answered).await, "123456");
    }
}

#[tokio::test(start_paused = true)]
async fn trailers_come_with_the_answer() {
    let destination = Destination::new(|_| {
        let trailers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-status"),
            HeaderValue::from_static("0"),
        )]);
        let frames =
            [Ok::<_, BoxError>(Frame::data(Bytes::from("1"))), Ok(Frame::trailers(trailers))];
        Reply::Said(Response::new(Body::new(StreamBody::new(stream::iter(frames)))))
    });
    let response = destination.ask(RetryOptions::default(), post()).await.unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(collected.to_bytes(), "1");
}
