//! Refusals of the admin API, as RFC 9457 problem documents.

use axum::{
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use hapax_core::{OneLine, StoreError, inbox::ConsumerName};
use hapax_engine::operator::{ChangeError, Refusal};
use serde_json::json;

/// A refusal: which kind it is, for programs, and what to do, for people.
#[derive(Debug)]
pub(super) struct AdminProblem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

impl AdminProblem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), header: None }
    }

    /// What was sent cannot be understood.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    /// More was sent than is read.
    pub(super) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail)
    }

    /// It is not as whoever asks for a change saw it.
    pub(super) fn conflict(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, detail)
    }

    /// Nothing is known about this operation.
    pub(super) fn unknown_operation() -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown", Refusal::Unknown.to_string())
    }

    /// There is nothing at this address.
    pub(super) fn no_such_page() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no-such-page", "see /v1/openapi.json for what there is")
    }

    /// The address exists, and does not take this method.
    pub(super) fn no_such_method() -> Self {
        let detail = "see /v1/openapi.json for what there is";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "no-such-method", detail)
    }

    /// The store has none.
    pub(super) fn no_outbox() -> Self {
        let detail = "this store has no outbox: nothing can be emitted into a store in memory";
        Self::new(StatusCode::NOT_FOUND, "no-outbox", detail)
    }

    /// The outbox knows no such destination.
    pub(super) fn unknown_destination(name: &str) -> Self {
        let detail = format!("there is no destination {name:?}; see /v1/outbox");
        Self::new(StatusCode::NOT_FOUND, "unknown-destination", detail)
    }

    /// No parked event is meant.
    pub(super) fn nothing_parked() -> Self {
        let detail = "no parked event is meant: it was sent, or removed, or never parked";
        Self::new(StatusCode::NOT_FOUND, "nothing-parked", detail)
    }

    /// The store has none.
    pub(super) fn no_inbox() -> Self {
        let detail = "this store has no inbox: nobody can consume on a store in memory";
        Self::new(StatusCode::NOT_FOUND, "no-inbox", detail)
    }

    /// The inbox knows no such consumer.
    pub(super) fn unknown_consumer(name: &ConsumerName) -> Self {
        let ConsumerName { tenant, name } = name;
        let detail = format!("there is no consumer {name:?} of {tenant:?}; see /v1/consumers");
        Self::new(StatusCode::NOT_FOUND, "unknown-consumer", detail)
    }

    /// There is no such dead letter.
    pub(super) fn unknown_letter() -> Self {
        let detail = "there is no dead letter of this message and content: it was changed by \
                      somebody, or never written";
        Self::new(StatusCode::NOT_FOUND, "unknown-letter", detail)
    }

    /// The letter, or what is remembered of its message, is not what was seen.
    pub(super) fn letter_changed() -> Self {
        let detail = "it is not the dead letter that you saw any more: look again";
        Self::new(StatusCode::CONFLICT, "changed", detail)
    }

    /// No failure of the letter's message is remembered.
    pub(super) fn nothing_to_forgive(detail: &'static str) -> Self {
        Self::new(StatusCode::CONFLICT, "nothing-to-forgive", detail)
    }

    /// Who asks may not do this.
    pub(super) fn forbidden(code: &'static str, detail: &'static str) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, detail)
    }

    /// A browser came by a name that anybody could give to this listener.
    pub(super) fn unknown_host() -> Self {
        let detail = "browsers may come by 127.0.0.1, localhost, the address of this listener, or \
                      a name that `admin_hosts` in the configuration lists; this is none of them";
        Self::new(StatusCode::MISDIRECTED_REQUEST, "unknown-host", detail)
    }

    /// Somebody showed another token.
    pub(super) fn wrong_token() -> Self {
        Self::unauthorized(
            "Bearer realm=\"hapax\", error=\"invalid_token\"",
            "this is not the gateway's admin token",
        )
    }

    /// Somebody was signed in.
    pub(super) fn session_over() -> Self {
        Self::unauthorized("Bearer realm=\"hapax\"", "the session is over: sign in again")
    }

    /// The system gives nothing that nobody could guess.
    pub(super) fn no_randomness() -> Self {
        let detail = "the operating system gave no random bytes, so no session can be begun";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "no-randomness", detail)
    }

    /// As many listen as may.
    pub(super) fn too_many_streams(max: usize) -> Self {
        let detail = format!("{max} streams are open; ask for /v1/overview now and then instead");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail)
    }

    /// The gateway was told to stop.
    pub(super) fn draining() -> Self {
        let detail = "the gateway was told to stop";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "draining", detail)
    }

    /// Who asks did not show the token.
    pub(super) fn unauthorized(challenge: &'static str, detail: &'static str) -> Self {
        let header = Some((WWW_AUTHENTICATE, HeaderValue::from_static(challenge)));
        Self { header, ..Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail) }
    }
}

impl From<StoreError> for AdminProblem {
    fn from(error: StoreError) -> Self {
        let (status, code) = match &error {
            StoreError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "store-unavailable"),
            StoreError::Unconfirmed(_) => (StatusCode::SERVICE_UNAVAILABLE, "unconfirmed"),
            StoreError::Damaged(_) => (StatusCode::INTERNAL_SERVER_ERROR, "damaged"),
            StoreError::TooNew(_) => (StatusCode::SERVICE_UNAVAILABLE, "too-new"),
        };
        let passes = matches!(error, StoreError::Unavailable(_));
        let header = passes.then(|| (RETRY_AFTER, HeaderValue::from_static("1")));
        Self { header, ..Self::new(status, code, OneLine::of(&error).to_string()) }
    }
}

impl From<ChangeError> for AdminProblem {
    fn from(error: ChangeError) -> Self {
        let detail = OneLine::of(&error).to_string();
        match error {
            ChangeError::Refused(refusal) => {
                let code = match refusal {
                    Refusal::Unknown => return Self::unknown_operation(),
                    Refusal::Finished { .. } => "finished",
                    Refusal::Changed { .. } => "changed",
                    Refusal::Running { .. } => "running",
                    Refusal::AtWork { .. } => "at-work",
                    Refusal::Contended => "contended",
                };
                Self::new(StatusCode::CONFLICT, code, detail)
            }
            ChangeError::NotNoted(cause) | ChangeError::Store(cause) => {
                Self { detail, ..Self::from(cause) }
            }
            ChangeError::Unconfirmed(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unconfirmed", detail)
            }
        }
    }
}

impl IntoResponse for AdminProblem {
    fn into_response(self) -> Response {
        let document = json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "detail": self.detail,
            "code": self.code,
        });
        let headers = [(CONTENT_TYPE, "application/problem+json"), (CACHE_CONTROL, "no-store")];
        let mut response = (self.status, headers, document.to_string()).into_response();
        response.headers_mut().extend(self.header);
        response
    }
}
