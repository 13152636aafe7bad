//! Every refusal, in one table.

use http::{Response, StatusCode};

use crate::{
    body::Body,
    server::{layer::Site, responses::problem::Problem},
};

/// Why a request was not answered by the protected service.
///
/// ```
/// use hapax_tower::Code;
///
/// assert_eq!(Code::KeyReused.code(), "key-reused");
/// assert_eq!(Code::KeyReused.status(), 422);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// A key is required here and none was sent.
    KeyMissing,
    /// The key is not one quoted string, and not a plain one either.
    KeyMalformed,
    /// The route is strict, and the key came without its quotes.
    KeyNotQuoted,
    /// The key has no characters, or only spaces.
    KeyEmpty,
    /// The key is longer than 255 characters; it is never cut.
    KeyTooLong,
    /// There is more than one header line with a key.
    KeyRepeated,
    /// None was sent, and nothing of the request could be made into one.
    KeyUnderivable,
    /// The key belongs to a request that was not this one.
    KeyReused,
    /// The first request with the key is still being worked on.
    KeyInFlight,
    /// The operation was done, and its answer is no longer kept.
    KeyGone,
    /// `Repeatability-First-Sent` is not an HTTP date.
    FirstSentMalformed,
    /// It can no longer be told whether the operation was done.
    FirstSentTooOld,
    /// `Hapax-Deadline`, or `grpc-timeout` where it is read, is not a time.
    DeadlineMalformed,
    /// The caller's time was over before anything was run.
    DeadlinePassed,
    /// Nobody can be told whose key this is.
    CredentialMissing,
    /// It would be run later, without the credentials it came with.
    CredentialsNotKept,
    /// The caller is known and may not ask.
    CallerRefused,
    /// Whoever knows the callers cannot be asked.
    CallerUnverifiable,
    /// The path is too long, or not visible ASCII.
    ScopeUnusable,
    /// The method is not offered: `CONNECT`, and by a gateway `TRACE`.
    MethodRefused,
    /// `Transfer-Encoding` names something else than chunks.
    TransferCodingUnknown,
    /// `Transfer-Encoding` names chunks more than once.
    TransferCodingRepeated,
    /// The path or the method could be read as another one.
    TargetUnclear,
    /// No route names the request, and nothing else is served.
    RouteUnknown,
    /// It is not clear which host the request is for.
    HostUnclear,
    /// The request is for a host that is not served here.
    HostUnknown,
    /// The body is larger than the route reads.
    BodyTooLarge,
    /// The body did not come in time.
    BodyTooSlow,
    /// The body ended before it was complete.
    BodyIncomplete,
    /// The body cannot be compared as the route compares them.
    BodyNotCanonical,
    /// `Content-Encoding` was sent to a route that compares what is in bodies.
    BodyEncoded,
    /// An attempt ended without an answer, and must not be repeated by itself.
    OutcomeInDoubt,
    /// It ran, and the store did not take its outcome.
    OutcomeNotRecorded,
    /// It was done and its answer is stored, but there is no room to hand it out now.
    AnswerHeldBack,
    /// The response was too large to keep.
    ResponseNotRetained,
    /// What is stored is not what was written.
    StoredResponseCorrupt,
    /// This process cannot read it.
    StoredByNewerVersion,
    /// Without the store nothing is run.
    StoreUnavailable,
    /// The store may have forgotten that it was run.
    StoreQuarantined,
    /// The store is not keeping up.
    Overloaded,
    /// Nothing new is begun here.
    ShuttingDown,
    /// The caller began more operations than its share.
    RateLimited,
    /// The service panicked.
    ExecutionPanicked,
    /// The service was stopped at its time limit.
    ExecutionTimedOut,
    /// The service failed, or its answer broke off.
    ExecutionUnanswered,
    /// The service refused before it began.
    ExecutionNotStarted,
    /// The transaction of the operation was rolled back: nothing happened.
    TransactionRolledBack,
    /// Nothing is known under this address.
    OperationUnknown,
}

impl Code {
    /// Every code.
    pub const ALL: &[Self] = &[
        Self::KeyMissing,
        Self::KeyMalformed,
        Self::KeyNotQuoted,
        Self::KeyEmpty,
        Self::KeyTooLong,
        Self::KeyRepeated,
        Self::KeyUnderivable,
        Self::KeyReused,
        Self::KeyInFlight,
        Self::KeyGone,
        Self::FirstSentMalformed,
        Self::FirstSentTooOld,
        Self::DeadlineMalformed,
        Self::DeadlinePassed,
        Self::CredentialMissing,
        Self::CredentialsNotKept,
        Self::CallerRefused,
        Self::CallerUnverifiable,
        Self::ScopeUnusable,
        Self::MethodRefused,
        Self::TransferCodingUnknown,
        Self::TransferCodingRepeated,
        Self::TargetUnclear,
        Self::RouteUnknown,
        Self::HostUnclear,
        Self::HostUnknown,
        Self::BodyTooLarge,
        Self::BodyTooSlow,
        Self::BodyIncomplete,
        Self::BodyNotCanonical,
        Self::BodyEncoded,
        Self::OutcomeInDoubt,
        Self::OutcomeNotRecorded,
        Self::AnswerHeldBack,
        Self::ResponseNotRetained,
        Self::StoredResponseCorrupt,
        Self::StoredByNewerVersion,
        Self::StoreUnavailable,
        Self::StoreQuarantined,
        Self::Overloaded,
        Self::ShuttingDown,
        Self::RateLimited,
        Self::ExecutionPanicked,
        Self::ExecutionTimedOut,
        Self::ExecutionUnanswered,
        Self::ExecutionNotStarted,
        Self::TransactionRolledBack,
        Self::OperationUnknown,
    ];

    /// The last part of a problem's `type`, and the name of the page that explains it.
    pub const fn code(self) -> &'static str {
        match self {
            Self::KeyMissing => "key-missing",
            Self::KeyMalformed => "key-malformed",
            Self::KeyNotQuoted => "key-not-quoted",
            Self::KeyEmpty => "key-empty",
            Self::KeyTooLong => "key-too-long",
            Self::KeyRepeated => "key-repeated",
            Self::KeyUnderivable => "key-underivable",
            Self::KeyReused => "key-reused",
            Self::KeyInFlight => "key-in-flight",
            Self::KeyGone => "key-gone",
            Self::FirstSentMalformed => "first-sent-malformed",
            Self::FirstSentTooOld => "first-sent-too-old",
            Self::DeadlineMalformed => "deadline-malformed",
            Self::DeadlinePassed => "deadline-passed",
            Self::CredentialMissing => "credential-missing",
            Self::CredentialsNotKept => "credentials-not-kept",
            Self::CallerRefused => "caller-refused",
            Self::CallerUnverifiable => "caller-unverifiable",
            Self::ScopeUnusable => "scope-unusable",
            Self::MethodRefused => "method-refused",
            Self::TransferCodingUnknown => "transfer-coding-unknown",
            Self::TransferCodingRepeated => "transfer-coding-repeated",
            Self::TargetUnclear => "target-unclear",
            Self::RouteUnknown => "route-unknown",
            Self::HostUnclear => "host-unclear",
            Self::HostUnknown => "host-unknown",
            Self::BodyTooLarge => "body-too-large",
            Self::BodyTooSlow => "body-too-slow",
            Self::BodyIncomplete => "body-incomplete",
            Self::BodyNotCanonical => "body-not-canonical",
            Self::BodyEncoded => "body-encoded",
            Self::OutcomeInDoubt => "outcome-in-doubt",
            Self::OutcomeNotRecorded => "outcome-not-recorded",
            Self::AnswerHeldBack => "answer-held-back",
            Self::ResponseNotRetained => "response-not-retained",
            Self::StoredResponseCorrupt => "stored-response-corrupt",
            Self::StoredByNewerVersion => "stored-by-newer-version",
            Self::StoreUnavailable => "store-unavailable",
            Self::StoreQuarantined => "store-quarantined",
            Self::Overloaded => "overloaded",
            Self::ShuttingDown => "shutting-down",
            Self::RateLimited => "rate-limited",
            Self::ExecutionPanicked => "execution-panicked",
            Self::ExecutionTimedOut => "execution-timed-out",
            Self::ExecutionUnanswered => "execution-unanswered",
            Self::ExecutionNotStarted => "execution-not-started",
            Self::TransactionRolledBack => "transaction-rolled-back",
            Self::OperationUnknown => "operation-unknown",
        }
    }

    /// The code of this name; `None` for a name that is not ours.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.code() == name)
    }

    /// One sentence that is the same for every refusal of this kind.
    pub const fn title(self) -> &'static str {
        match self {
            Self::KeyMissing => "The request has no idempotency key",
            Self::KeyMalformed => "The idempotency key is malformed",
            Self::KeyNotQuoted => "The idempotency key is not quoted",
            Self::KeyEmpty => "The idempotency key is empty",
            Self::KeyTooLong => "The idempotency key is too long",
            Self::KeyRepeated => "The idempotency key was sent more than once",
            Self::KeyUnderivable => "No idempotency key can be made of the request",
            Self::KeyReused => "The idempotency key was used for another request",
            Self::KeyInFlight => "A request with this idempotency key is in progress",
            Self::KeyGone => "The idempotency key is past its retention",
            Self::FirstSentMalformed => "The time of the first attempt is missing or malformed",
            Self::FirstSentTooOld => "The first attempt is older than what is remembered",
            Self::DeadlineMalformed => "The time left is malformed",
            Self::DeadlinePassed => "The caller's time was over before anything was run",
            Self::CredentialMissing => "The request has no credential",
            Self::CredentialsNotKept => "The request cannot be run later without its credentials",
            Self::CallerRefused => "The caller may not ask for this",
            Self::CallerUnverifiable => "It cannot be found out who asks",
            Self::ScopeUnusable => "The path cannot name an operation",
            Self::MethodRefused => "The method is not offered here",
            Self::TransferCodingUnknown => "The body is coded in a way that is not known here",
            Self::TransferCodingRepeated => "The body is said to be in chunks more than once",
            Self::TargetUnclear => "The target can be read as another one",
            Self::RouteUnknown => "No route names this request",
            Self::HostUnclear => "It is not clear which host is meant",
            Self::HostUnknown => "The host is not served here",
            Self::BodyTooLarge => "The request is too large",
            Self::BodyTooSlow => "The request came too slowly",
            Self::BodyIncomplete => "The request ended early",
            Self::BodyNotCanonical => "The body has no single meaning",
            Self::BodyEncoded => "An encoded body cannot be compared by its content",
            Self::OutcomeInDoubt => "Nobody knows whether the operation happened",
            Self::OutcomeNotRecorded => "The outcome could not be recorded",
            Self::AnswerHeldBack => "Too many answers wait to be taken",
            Self::ResponseNotRetained => "The operation was done and its response was not kept",
            Self::StoredResponseCorrupt => "The stored response is damaged",
            Self::StoredByNewerVersion => "The stored record was written by a newer version",
            Self::StoreUnavailable => "The store cannot be asked",
            Self::StoreQuarantined => "The store may have forgotten this key",
            Self::Overloaded => "Too many operations are waiting",
            Self::ShuttingDown => "The service is shutting down",
            Self::RateLimited => "Too many new operations",
            Self::ExecutionPanicked => "The service failed while it was at work",
            Self::ExecutionTimedOut => "The service took too long",
            Self::ExecutionUnanswered => "The service gave no complete answer",
            Self::ExecutionNotStarted => "The service was not ready",
            Self::TransactionRolledBack => "The operation was rolled back",
            Self::OperationUnknown => "There is no such operation",
        }
    }

    /// The status it is answered with.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::KeyMissing
            | Self::KeyMalformed
            | Self::KeyNotQuoted
            | Self::KeyEmpty
            | Self::KeyTooLong
            | Self::KeyRepeated
            | Self::KeyUnderivable
            | Self::FirstSentMalformed
            | Self::DeadlineMalformed
            | Self::CredentialsNotKept
            | Self::ScopeUnusable
            | Self::TransferCodingRepeated
            | Self::TargetUnclear
            | Self::HostUnclear
            | Self::BodyIncomplete
            | Self::BodyNotCanonical => StatusCode::BAD_REQUEST,
            Self::KeyReused => StatusCode::UNPROCESSABLE_ENTITY,
            Self::KeyInFlight | Self::OutcomeInDoubt | Self::ResponseNotRetained => {
                StatusCode::CONFLICT
            }
            Self::KeyGone => StatusCode::GONE,
            Self::FirstSentTooOld => StatusCode::PRECONDITION_FAILED,
            Self::CredentialMissing => StatusCode::UNAUTHORIZED,
            Self::CallerRefused => StatusCode::FORBIDDEN,
            Self::MethodRefused | Self::TransferCodingUnknown => StatusCode::NOT_IMPLEMENTED,
            Self::HostUnknown => StatusCode::MISDIRECTED_REQUEST,
            Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::RateLimited => StatusCode::TOO_MANY_REQUESTS,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodyEncoded => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::OutcomeNotRecorded
            | Self::AnswerHeldBack
            | Self::StoredByNewerVersion
            | Self::StoreUnavailable
            | Self::StoreQuarantined
            | Self::Overloaded
            | Self::ShuttingDown
            | Self::CallerUnverifiable
            | Self::ExecutionNotStarted
            | Self::TransactionRolledBack => StatusCode::SERVICE_UNAVAILABLE,
            Self::StoredResponseCorrupt | Self::ExecutionPanicked => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            Self::ExecutionTimedOut | Self::DeadlinePassed => StatusCode::GATEWAY_TIMEOUT,
            Self::ExecutionUnanswered => StatusCode::BAD_GATEWAY,
            Self::OperationUnknown | Self::RouteUnknown => StatusCode::NOT_FOUND,
        }
    }

    /// The refusal as an answer, for services around the layer that refuse in its words.
    pub fn answer(self, detail: &'static str, site: &Site) -> Response<Body> {
        Problem::new(self, detail).into_response(site)
    }
}
