//! Refusals in the words of APIs whose clients are everywhere: one table, by kind and by dialect.

use hapax_core::OperationId;
use http::{
    HeaderMap, HeaderName, HeaderValue, Response, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use serde_json::{Value, json};

use crate::{
    body::Body,
    header_names::IDEMPOTENCY_KEY,
    refusal_header::{self, DIALECT},
    server::{
        dialect::Dialect,
        layer::Site,
        requests::headers::EXPIRES,
        responses::{code::Code, problem::Problem},
        verdict::Verdict,
    },
};

const SHOULD_RETRY: HeaderName = HeaderName::from_static("stripe-should-retry");
const TRANSIENT_ERROR: HeaderName = HeaderName::from_static("transient-error");
const REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// What a refusal is about, as far as the vendors tell refusals apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalKind {
    /// The request has to be another one.
    Invalid,
    Unauthenticated,
    Forbidden,
    NotFound,
    Reused,
    InFlight,
    /// It was done, or may have been, and what came of it cannot be told: another key would do it
    /// again.
    Untold,
    TooMany,
    /// The trouble is on this side.
    Failed,
}

impl RefusalKind {
    const fn of(code: Code) -> Self {
        match code {
            Code::KeyMissing
            | Code::KeyMalformed
            | Code::KeyNotQuoted
            | Code::KeyEmpty
            | Code::KeyTooLong
            | Code::KeyRepeated
            | Code::FirstSentMalformed
            | Code::DeadlineMalformed
            | Code::CredentialsNotKept
            | Code::ScopeUnusable
            | Code::MethodRefused
            | Code::TransferCodingUnknown
            | Code::TransferCodingRepeated
            | Code::TargetUnclear
            | Code::HostUnclear
            | Code::BodyTooLarge
            | Code::BodyTooSlow
            | Code::BodyIncomplete
            | Code::BodyNotCanonical
            | Code::BodyEncoded => Self::Invalid,
            Code::CredentialMissing => Self::Unauthenticated,
            Code::CallerRefused => Self::Forbidden,
            Code::RouteUnknown | Code::HostUnknown | Code::OperationUnknown => Self::NotFound,
            Code::KeyReused => Self::Reused,
            Code::KeyInFlight => Self::InFlight,
            Code::KeyGone
            | Code::FirstSentTooOld
            | Code::OutcomeInDoubt
            | Code::ResponseNotRetained => Self::Untold,
            Code::RateLimited => Self::TooMany,
            Code::DeadlinePassed
            | Code::CallerUnverifiable
            | Code::OutcomeNotRecorded
            | Code::AnswerHeldBack
            | Code::StoredResponseCorrupt
            | Code::StoredByNewerVersion
            | Code::StoreUnavailable
            | Code::StoreQuarantined
            | Code::Overloaded
            | Code::ShuttingDown
            | Code::ExecutionPanicked
            | Code::ExecutionTimedOut
            | Code::ExecutionUnanswered
            | Code::ExecutionNotStarted
            | Code::TransactionRolledBack => Self::Failed,
        }
    }
}

/// A refusal in a vendor's words.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusalWords {
    status: StatusCode,
    /// Stripe's `type`, PayPal's `name`, Adyen's `errorType`.
    class: &'static str,
    /// Stripe's `code`, PayPal's `issue`, Adyen's `errorCode`: the vendor's where it has one, ours
    /// in its spelling otherwise.
    code: String,
}

/// The words of a dialect for a refusal; `None` where it is a problem document.
fn words(dialect: &Dialect, code: Code) -> Option<RefusalWords> {
    let (status, class) = match dialect {
        Dialect::Header(_) | Dialect::Repeatability => return None,
        Dialect::Stripe => of_stripe(code),
        Dialect::Paypal => of_paypal(code),
        Dialect::Adyen => of_adyen(code),
    };
    let code = match (dialect, code) {
        (Dialect::Stripe, Code::KeyInFlight) => "idempotency_key_in_use".to_owned(),
        (Dialect::Stripe, Code::RateLimited) => "rate_limit".to_owned(),
        (Dialect::Stripe, code) => code.code().replace('-', "_"),
        (Dialect::Paypal, Code::KeyMissing) => "PAYPAL_REQUEST_ID_REQUIRED".to_owned(),
        (Dialect::Paypal, Code::KeyInFlight) => "PREVIOUS_REQUEST_IN_PROGRESS".to_owned(),
        (Dialect::Paypal, code) => code.code().replace('-', "_").to_uppercase(),
        (Dialect::Adyen, Code::KeyInFlight) => "704".to_owned(),
        (Dialect::Adyen | Dialect::Header(_) | Dialect::Repeatability, code) => {
            code.code().to_owned()
        }
    };
    Some(RefusalWords { status, class, code })
}

const fn of_stripe(code: Code) -> (StatusCode, &'static str) {
    match RefusalKind::of(code) {
        RefusalKind::Invalid => (StatusCode::BAD_REQUEST, "invalid_request_error"),
        RefusalKind::Unauthenticated => (StatusCode::UNAUTHORIZED, "invalid_request_error"),
        RefusalKind::Forbidden => (StatusCode::FORBIDDEN, "invalid_request_error"),
        RefusalKind::NotFound => (StatusCode::NOT_FOUND, "invalid_request_error"),
        RefusalKind::Reused => (StatusCode::BAD_REQUEST, "idempotency_error"),
        RefusalKind::InFlight => (StatusCode::CONFLICT, "idempotency_error"),
        RefusalKind::Untold => (StatusCode::CONFLICT, "api_error"),
        RefusalKind::TooMany => (StatusCode::TOO_MANY_REQUESTS, "invalid_request_error"),
        RefusalKind::Failed => (code.status(), "api_error"),
    }
}

fn of_paypal(code: Code) -> (StatusCode, &'static str) {
    match RefusalKind::of(code) {
        RefusalKind::Invalid => (StatusCode::BAD_REQUEST, "INVALID_REQUEST"),
        RefusalKind::Unauthenticated => (StatusCode::UNAUTHORIZED, "AUTHENTICATION_FAILURE"),
        RefusalKind::Forbidden => (StatusCode::FORBIDDEN, "NOT_AUTHORIZED"),
        RefusalKind::NotFound => (StatusCode::NOT_FOUND, "RESOURCE_NOT_FOUND"),
        RefusalKind::Reused => (StatusCode::UNPROCESSABLE_ENTITY, "UNPROCESSABLE_ENTITY"),
        RefusalKind::InFlight | RefusalKind::Untold => (StatusCode::CONFLICT, "RESOURCE_CONFLICT"),
        RefusalKind::TooMany => (StatusCode::TOO_MANY_REQUESTS, "RATE_LIMIT_REACHED"),
        RefusalKind::Failed if code.status() == StatusCode::SERVICE_UNAVAILABLE => {
            (code.status(), "SERVICE_UNAVAILABLE")
        }
        RefusalKind::Failed => (code.status(), "INTERNAL_SERVER_ERROR"),
    }
}

const fn of_adyen(code: Code) -> (StatusCode, &'static str) {
    match RefusalKind::of(code) {
        RefusalKind::Invalid => (StatusCode::BAD_REQUEST, "validation"),
        RefusalKind::Unauthenticated => (StatusCode::UNAUTHORIZED, "security"),
        RefusalKind::Forbidden => (StatusCode::FORBIDDEN, "security"),
        RefusalKind::NotFound => (StatusCode::NOT_FOUND, "validation"),
        RefusalKind::Reused => (StatusCode::UNPROCESSABLE_ENTITY, "validation"),
        RefusalKind::InFlight => (StatusCode::CONFLICT, "validation"),
        RefusalKind::Untold => (StatusCode::CONFLICT, "internal"),
        RefusalKind::TooMany => (StatusCode::TOO_MANY_REQUESTS, "internal"),
        RefusalKind::Failed => (code.status(), "internal"),
    }
}

/// What is known of a request when its answer is told.
pub(crate) struct AnsweredRequest {
    dialect: Dialect,
    /// The key as it was sent, where the dialect repeats it.
    key: Option<HeaderValue>,
}

impl AnsweredRequest {
    /// `None` where answers are told as they are.
    pub(crate) fn of(dialect: &Dialect, headers: &HeaderMap) -> Option<Self> {
        let repeats_key = match dialect {
            Dialect::Header(_) | Dialect::Repeatability => return None,
            Dialect::Paypal => false,
            Dialect::Stripe | Dialect::Adyen => true,
        };
        let key = headers.get(dialect.key_header()).filter(|_| repeats_key).cloned();
        Some(Self { dialect: dialect.clone(), key })
    }

    /// Tells this answer in the request's dialect.
    pub(crate) fn tell(
        self,
        response: &mut Response<Body>,
        site: &Site,
        verdict: Verdict,
        operation: Option<OperationId>,
    ) {
        let refused = refusal_header::code(response.headers()).and_then(Code::parse);
        // Another Hapax further in may have said it in a vendor's words already.
        let is_told = response.headers().contains_key(DIALECT);
        if let Some(code) = refused.filter(|_| !is_told) {
            self.translate(response, site, code, operation);
        }
        if refused.is_some() {
            let comes_back = response.headers().contains_key(RETRY_AFTER);
            self.advise(response, comes_back);
        } else if is_final(response, verdict) {
            self.advise(response, false);
        }
        if let Some(key) = self.key {
            response.headers_mut().insert(IDEMPOTENCY_KEY, key);
        }
    }

    fn translate(
        &self,
        response: &mut Response<Body>,
        site: &Site,
        code: Code,
        operation: Option<OperationId>,
    ) {
        let Some(words) = words(&self.dialect, code) else { return };
        // What was stored, or comes from further in, has its title alone.
        let told = response.extensions_mut().remove::<Problem>();
        let message = told.map_or_else(|| format!("{}.", code.title()), |told| told.message());
        let document = document(&self.dialect, &words, (code, message), site, operation);
        *response.status_mut() = words.status;
        *response.body_mut() = Body::from(bytes::Bytes::from(document.to_string()));
        let headers = response.headers_mut();
        headers.remove(CONTENT_LENGTH);
        headers.remove(CONTENT_ENCODING);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(DIALECT, HeaderValue::from_static(self.dialect.as_str()));
        if let (Dialect::Stripe, Some(id)) = (&self.dialect, operation)
            && let Ok(id) = HeaderValue::try_from(format!("req_{id}"))
        {
            headers.insert(REQUEST_ID, id);
        }
    }

    /// Says whether asking again with the same key can help.
    fn advise(&self, response: &mut Response<Body>, comes_back: bool) {
        let name = match self.dialect {
            Dialect::Stripe => SHOULD_RETRY,
            Dialect::Adyen => TRANSIENT_ERROR,
            Dialect::Paypal | Dialect::Header(_) | Dialect::Repeatability => return,
        };
        let advice = if comes_back { "true" } else { "false" };
        response.headers_mut().insert(name, HeaderValue::from_static(advice));
    }
}

/// Whether the same will be said again, however often it is asked for: a stored error, or a failure
/// that is stored from now on.
fn is_final(response: &Response<Body>, verdict: Verdict) -> bool {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_kept = response.headers().contains_key(EXPIRES);
    is_error && (verdict == Verdict::Replayed || is_kept)
}

fn document(
    dialect: &Dialect,
    words: &RefusalWords,
    (code, message): (Code, String),
    site: &Site,
    operation: Option<OperationId>,
) -> Value {
    let RefusalWords { status, class, code: own_code } = words;
    let page = site.page(code);
    match dialect {
        Dialect::Stripe => json!({ "error": {
            "type": class,
            "code": own_code,
            "message": message,
            "doc_url": page,
        } }),
        Dialect::Paypal => json!({
            "name": class,
            "message": code.title(),
            "debug_id": operation.map(|id| id.to_string()).unwrap_or_default(),
            "details": [{ "issue": own_code, "description": message }],
            "links": [{ "href": page, "rel": "information_link" }],
        }),
        Dialect::Adyen | Dialect::Header(_) | Dialect::Repeatability => json!({
            "status": status.as_u16(),
            "errorCode": own_code,
            "message": message,
            "errorType": class,
        }),
    }
}

/// The status that clients of a dialect are refused with.
pub(crate) fn status_in(dialect: &Dialect, code: Code) -> StatusCode {
    words(dialect, code).map_or_else(|| code.status(), |words| words.status)
}

/// The media type of refusals in a dialect, and what they look like, for OpenAPI.
pub(crate) fn described_in(dialect: &Dialect) -> (&'static str, Value) {
    let text = json!({ "type": "string" });
    let object = |required: &[&str], properties: Value| json!({ "type": "object", "required": required, "properties": properties });
    let schema = match dialect {
        Dialect::Header(_) | Dialect::Repeatability => {
            let schema = json!({ "$ref": "#/components/schemas/Problem" });
            return ("application/problem+json", schema);
        }
        Dialect::Stripe => {
            let error = json!({ "type": text, "code": text, "message": text, "doc_url": text });
            let error = object(&["type", "code", "message"], error);
            object(&["error"], json!({ "error": error }))
        }
        Dialect::Paypal => {
            let detail = object(&["issue"], json!({ "issue": text, "description": text }));
            let details = json!({ "type": "array", "items": detail });
            let known = json!({
                "name": text,
                "message": text,
                "debug_id": text,
                "details": details,
                "links": { "type": "array" },
            });
            object(&["name", "message", "debug_id"], known)
        }
        Dialect::Adyen => {
            let status = json!({ "type": "integer" });
            let known = json!({
                "status": status,
                "errorCode": text,
                "message": text,
                "errorType": text,
            });
            object(&["status", "errorCode", "message", "errorType"], known)
        }
    };
    ("application/json", schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    const VENDORS: [Dialect; 3] = [Dialect::Stripe, Dialect::Paypal, Dialect::Adyen];

    #[test]
    fn every_refusal_has_words_in_every_dialect_and_stays_an_error() {
        for dialect in &VENDORS {
            for code in Code::ALL {
                let words = words(dialect, *code).unwrap();
                let is_error = words.status.is_client_error() || words.status.is_server_error();
                assert!(is_error && !words.class.is_empty() && !words.code.is_empty(), "{words:?}");
            }
        }
    }

    #[test]
    fn a_failure_on_this_side_is_one_in_every_dialect() {
        // Another Hapax further out looks at its code only then.
        for dialect in &VENDORS {
            for code in Code::ALL {
                let (ours, told) = (code.status(), status_in(dialect, *code));
                let is_failure =
                    ours.is_server_error() && RefusalKind::of(*code) == RefusalKind::Failed;
                assert_eq!(told.is_server_error(), is_failure, "{code:?} in {dialect:?}");
                let waits = matches!(code, Code::KeyInFlight | Code::OutcomeInDoubt);
                assert!(!waits || told == StatusCode::CONFLICT, "{code:?} in {dialect:?}");
            }
        }
    }
}
