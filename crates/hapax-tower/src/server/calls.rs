//! Calls of gRPC: how one ended is said in `grpc-status`, mostly after its body, and HTTP says 200 of
//! all of them. What is refused here is refused in the same words.

use std::future::ready;

use bytes::Bytes;
use hapax_core::Header;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
    response::Parts,
};
use http_body_util::{BodyExt, Full};

use crate::{
    body::Body,
    refusal_header,
    server::{options::Protection, requests::headers, responses::code::Code},
};

static STATUS: HeaderName = HeaderName::from_static("grpc-status");
static MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// When a client that retries by the rules of gRPC comes back, in milliseconds.
static PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// What the status of a stored call begins at. No status of HTTP is so large, so whoever does not know
/// calls refuses the record instead of telling an answer without its end.
const STORED_FROM: u16 = 1000;
/// What stands before the name of a stored trailer; no header can be called so.
const TRAILER: &str = "trailer:";

const OK: u16 = 0;
const UNKNOWN: u16 = 2;
const INVALID_ARGUMENT: u16 = 3;
const DEADLINE_EXCEEDED: u16 = 4;
const NOT_FOUND: u16 = 5;
const ALREADY_EXISTS: u16 = 6;
const PERMISSION_DENIED: u16 = 7;
const RESOURCE_EXHAUSTED: u16 = 8;
const FAILED_PRECONDITION: u16 = 9;
const ABORTED: u16 = 10;
const OUT_OF_RANGE: u16 = 11;
const UNIMPLEMENTED: u16 = 12;
const INTERNAL: u16 = 13;
const UNAVAILABLE: u16 = 14;
const UNAUTHENTICATED: u16 = 16;
/// The highest there is.
const STATUS_MAX: u16 = 16;

/// Whether a request, or an answer, says by its `Content-Type` that it belongs to a call of gRPC.
///
/// ```
/// use http::{HeaderMap, HeaderValue};
///
/// let mut headers = HeaderMap::new();
/// headers.insert("content-type", HeaderValue::from_static("application/grpc+proto"));
/// assert!(hapax_tower::is_call(&headers));
/// headers.insert("content-type", HeaderValue::from_static("application/grpc-web"));
/// assert!(!hapax_tower::is_call(&headers));
/// ```
pub fn is_call(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// How a call ended: an extension of the head of its complete answer.
#[derive(Debug, Clone)]
pub(crate) struct CallEnd {
    /// `None` if nobody said: then there was no complete answer.
    status: Option<u16>,
    trailers: HeaderMap,
}

impl CallEnd {
    /// How the call with this answer ended, whose body came to its end.
    pub(crate) fn of(headers: &HeaderMap, mut trailers: HeaderMap) -> Self {
        headers::strip_hops_and_ours(&mut trailers);
        let said = trailers.get(&STATUS).or_else(|| headers.get(&STATUS));
        let status = said.and_then(|said| said.to_str().ok()?.parse().ok());
        Self { status, trailers }
    }

    /// What it is stored as: the status, and trailers beside the headers.
    pub(crate) fn stored(&self, protection: &Protection) -> (u16, Vec<Header>) {
        let known = self.status.filter(|status| *status <= STATUS_MAX).unwrap_or(UNKNOWN);
        let mut trailers = headers::stored(&self.trailers, protection);
        for trailer in &mut trailers {
            trailer.name.insert_str(0, TRAILER);
        }
        (STORED_FROM + known, trailers)
    }

    /// What comes after its body.
    pub(crate) fn trailers(&self) -> &HeaderMap {
        &self.trailers
    }

    /// A body with what comes after it.
    pub(crate) fn after(&self, body: Bytes) -> Body {
        trailed(body, self.trailers.clone())
    }
}

/// The status that an answer is judged by: that of HTTP, or for a call the one that means the same.
pub(crate) fn judged_status(parts: &Parts) -> StatusCode {
    match parts.extensions.get::<CallEnd>() {
        Some(end) => end.status.map_or(StatusCode::GATEWAY_TIMEOUT, in_http),
        None => parts.status,
    }
}

/// The status of HTTP that means for an operation what this one of a call does: one table says what
/// is kept.
fn in_http(status: u16) -> StatusCode {
    match status {
        OK => StatusCode::OK,
        INVALID_ARGUMENT | FAILED_PRECONDITION | OUT_OF_RANGE => StatusCode::BAD_REQUEST,
        NOT_FOUND => StatusCode::NOT_FOUND,
        ALREADY_EXISTS => StatusCode::CONFLICT,
        PERMISSION_DENIED => StatusCode::FORBIDDEN,
        UNAUTHENTICATED => StatusCode::UNAUTHORIZED,
        // It was rolled back, or not begun.
        RESOURCE_EXHAUSTED | ABORTED => StatusCode::TOO_MANY_REQUESTS,
        UNIMPLEMENTED => StatusCode::NOT_IMPLEMENTED,
        UNAVAILABLE => StatusCode::SERVICE_UNAVAILABLE,
        // CANCELLED, UNKNOWN, DEADLINE_EXCEEDED, INTERNAL, DATA_LOSS, and what no gRPC knows: it may
        // have been carried out.
        _ => StatusCode::GATEWAY_TIMEOUT,
    }
}

/// Whether a stored status is that of a call.
pub(crate) fn is_stored_call(status: u16) -> bool {
    (STORED_FROM..=STORED_FROM + STATUS_MAX).contains(&status)
}

/// The name of a stored trailer; `None` if it is a header.
pub(crate) fn stored_trailer(name: &str) -> Option<&str> {
    name.strip_prefix(TRAILER)
}

/// A body with trailers, if there are any.
pub(crate) fn trailed(body: Bytes, trailers: HeaderMap) -> Body {
    if trailers.is_empty() {
        return Body::from(body);
    }
    Body::new(Full::new(body).with_trailers(ready(Some(Ok(trailers)))))
}

/// A refusal as the client of a call understands it: a status of gRPC, which says whether to ask again.
/// Answers of others are left as they are.
///
/// ```
/// use hapax_tower::{Code, Site, in_words_of_calls};
///
/// let refused = Code::KeyReused.answer("Another request.", &Site::default());
/// let told = in_words_of_calls(refused);
/// assert_eq!(told.status().as_u16(), 200);
/// assert_eq!(told.headers()["grpc-status"], "3");
/// ```
pub fn in_words_of_calls(mut response: Response<Body>) -> Response<Body> {
    let headers = response.headers();
    if is_call(headers) {
        return response;
    }
    let (status, message) = match refusal_header::code(headers).and_then(Code::parse) {
        Some(code) => (refused(code), code.title()),
        // A person has said what became of it.
        None if headers.contains_key(headers::REPLAYED) => {
            (ALREADY_EXISTS, "The operation was resolved; there is no answer of the service")
        }
        None => return response,
    };
    let pushback = headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
    let pushback = pushback.map(|seconds: u64| HeaderValue::from(seconds.saturating_mul(1000)));
    *response.status_mut() = StatusCode::OK;
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.remove(CONTENT_LANGUAGE);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(STATUS.clone(), status.into());
    headers.insert(MESSAGE.clone(), HeaderValue::from_static(message));
    if let Some(pushback) = pushback {
        headers.insert(PUSHBACK.clone(), pushback);
    }
    response
}

/// The status of gRPC for a refusal. UNAVAILABLE is the one that clients repeat by themselves, which
/// is right wherever the key makes it harmless.
fn refused(code: Code) -> u16 {
    let told = OF_CONFLICTS.iter().find(|(conflict, _)| *conflict == code);
    let by_status = || match code.status().as_u16() {
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 | 501 => UNIMPLEMENTED,
        408 => ABORTED,
        410 | 412 => FAILED_PRECONDITION,
        413 | 429 => RESOURCE_EXHAUSTED,
        500 => INTERNAL,
        502 => UNKNOWN,
        503 => UNAVAILABLE,
        504 => DEADLINE_EXCEEDED,
        _ => INVALID_ARGUMENT,
    };
    told.map_or_else(by_status, |(_, status)| *status)
}

/// What HTTP has one status for, 409.
const OF_CONFLICTS: [(Code, u16); 3] = [
    (Code::KeyInFlight, UNAVAILABLE),
    (Code::OutcomeInDoubt, FAILED_PRECONDITION),
    (Code::ResponseNotRetained, ALREADY_EXISTS),
];

#[cfg(test)]
mod tests {
    use hapax_core::{AnswerMeaning, Recovery};

    use super::*;
    use crate::{
        Site,
        server::execution::status_meaning::{ResultPolicy, meaning},
    };

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect()
    }

    fn judged(answer: &HeaderMap, trailers: HeaderMap) -> StatusCode {
        let mut parts = Response::new(()).into_parts().0;
        parts.extensions.insert(CallEnd::of(answer, trailers));
        judged_status(&parts)
    }

    #[test]
    fn every_status_of_a_call_means_under_every_policy_what_the_table_says() {
        // The columns are those of `ResultPolicy::ALL`, where nobody can find out.
        let table = [
            ("0", "cccc"),
            ("1", "dfdf"),
            ("2", "dfdf"),
            ("3", "ffnf"),
            ("4", "dfdf"),
            ("5", "ffnf"),
            ("6", "ffnf"),
            ("7", "nnnf"),
            ("8", "nnnf"),
            ("9", "ffnf"),
            ("10", "nnnf"),
            ("11", "ffnf"),
            ("12", "rfrf"),
            ("13", "dfdf"),
            ("14", "rfrf"),
            ("15", "dfdf"),
            ("16", "nnnf"),
            ("17", "dfdf"),
            ("no number", "dfdf"),
        ];
        for (said, row) in table {
            let status = judged(&HeaderMap::new(), headers(&[("grpc-status", said)]));
            for (results, letter) in ResultPolicy::ALL.into_iter().zip(row.chars()) {
                let found = meaning(status, &HeaderMap::new(), results, Recovery::Hold);
                let expected = match letter {
                    'c' => AnswerMeaning::Completed,
                    'f' => AnswerMeaning::Failed,
                    'n' => AnswerMeaning::NotDone,
                    'r' => AnswerMeaning::TakenForNotDone,
                    _ => AnswerMeaning::Inconclusive,
                };
                assert_eq!(found, expected, "{said} under {results:?}");
            }
        }
    }

    #[test]
    fn a_call_that_says_nothing_of_its_end_was_not_answered() {
        assert_eq!(judged(&HeaderMap::new(), HeaderMap::new()), StatusCode::GATEWAY_TIMEOUT);
        let alone = headers(&[("grpc-status", "5")]);
        assert_eq!(judged(&alone, HeaderMap::new()), StatusCode::NOT_FOUND, "without a body");
    }

    #[test]
    fn what_is_stored_of_a_call_is_no_answer_to_who_knows_no_calls() {
        let trailers = headers(&[
            ("grpc-status", "9"),
            ("x-why", "empty"),
            ("set-cookie", "a=1"),
            ("hapax-fence", "7"),
        ]);
        let end = CallEnd::of(&HeaderMap::new(), trailers);
        let (status, kept) = end.stored(&Protection::default());
        assert_eq!(status, 1009);
        assert!(is_stored_call(status) && StatusCode::from_u16(status).is_err());
        let names: Vec<_> = kept.iter().map(|header| header.name.as_str()).collect();
        assert_eq!(names, ["trailer:grpc-status", "trailer:x-why"]);
        assert!(kept.iter().all(|header| HeaderName::try_from(&*header.name).is_err()));
        assert_eq!(stored_trailer("trailer:x-why"), Some("x-why"));
    }

    #[test]
    fn every_refusal_is_told_as_a_status_that_is_not_success() {
        for code in Code::ALL {
            let told = in_words_of_calls(code.answer("Some detail.", &Site::default()));
            let status: u16 = told.headers()["grpc-status"].to_str().unwrap().parse().unwrap();
            assert!((1..=STATUS_MAX).contains(&status), "{code:?}: {status}");
            assert_eq!(told.headers()["hapax-refusal"], code.code());
            assert_eq!((told.status(), told.body().is_whole()), (StatusCode::OK, true));
        }
        let busy = Code::Overloaded.answer("Some detail.", &Site::default());
        let (mut parts, body) = busy.into_parts();
        parts.headers.insert(RETRY_AFTER, HeaderValue::from_static("2"));
        let told = in_words_of_calls(Response::from_parts(parts, body));
        assert_eq!(told.headers()["grpc-retry-pushback-ms"], "2000");
    }

    #[test]
    fn an_answer_of_somebody_else_is_left_as_it_is() {
        let page = Response::builder().status(404).header("content-type", "text/html");
        let left = in_words_of_calls(page.body(Body::empty()).unwrap());
        assert_eq!((left.status().as_u16(), left.headers().len()), (404, 1));
    }
}
