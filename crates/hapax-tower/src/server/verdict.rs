//! What the layer did with a request, for those who count.

use hapax_core::{Fingerprint, OperationId};
use hapax_engine::Admission;
use http::Response;

use super::{requests::worth::RepeatedWorth, responses::code::Code};

/// How a request was handled: an extension of every response the layer returns.
///
/// ```
/// use axum::{Router, body::Body, routing::post};
/// use hapax_tower::{Code, Handled, IdempotencyLayer, Tenancy, Verdict};
/// use tower::ServiceExt;
///
/// # use hapax_core::{Salt, Timestamp, memory};
/// # use hapax_engine::{Engine, Options};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # let engine = Engine::start(store, Options::default());
/// let layer = IdempotencyLayer::everywhere(engine, Tenancy::credential());
/// let app = Router::new().route("/payments", post(|| async { "paid" })).layer(layer);
/// let request = http::Request::post("/payments").header("authorization", "Bearer acme");
/// let answer = app.oneshot(request.body(Body::empty())?).await?;
/// let handled = answer.extensions().get::<Handled>().map(|handled| handled.verdict);
/// assert_eq!(handled, Some(Verdict::Refused(Code::KeyMissing)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handled {
    /// What the layer did.
    pub verdict: Verdict,
    /// Which route the request was treated by, in the order of
    /// [`Routes::labels`](crate::Routes::labels).
    pub route: usize,
    /// Which operation was asked for; `None` if it asked for none, or was refused before that was known.
    pub operation: Option<HandledOperation>,
    /// What it asked for once more, where it was answered with a stored success and its route says
    /// [what requests are worth](crate::Protection::worth).
    pub repeated: Option<RepeatedWorth>,
}

/// The operation a request asked for, named by hashes: nobody finds its key or its tenant by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandledOperation {
    /// Its id, which all attempts at it share.
    pub id: OperationId,
    /// What logs call its tenant; for requests that have the extension [`WantsTenant`] alone.
    pub tenant: Option<Fingerprint>,
}

/// An extension of requests whose server wants to know what logs call their tenant: a hash that not every
/// request has to pay for.
///
/// ```
/// use hapax_tower::WantsTenant;
/// use http::Request;
///
/// let mut request = Request::post("/payments").body(())?;
/// request.extensions_mut().insert(WantsTenant);
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WantsTenant;

/// What the layer did with a request.
///
/// ```
/// use hapax_tower::Verdict;
///
/// assert_eq!(Verdict::Replayed.as_str(), "replayed");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It was the first with its key, and was run to an answer.
    Executed,
    /// It was run, or found out about, in place of an owner that vanished.
    TakenOver,
    /// It was to be run, and came to no answer: this code says how. One of [`Verdict::UNANSWERED`].
    Unanswered(Code),
    /// It was accepted to be run later.
    Queued,
    /// It was answered with the stored outcome.
    Replayed,
    /// Somebody else was at work.
    Busy,
    /// Nobody knows whether it happened.
    InDoubt,
    /// Its key was used for another request.
    Mismatch,
    /// Its key is past retention.
    Gone,
    /// It was refused with this code, and nothing was run.
    Refused(Code),
    /// The store could not decide, and nothing was run.
    Undecided,
    /// The store was away, and it was run without protection.
    Unprotected,
    /// It is not protected, and passed.
    Passed,
    /// It brought no key and none could be made of it, as its route makes them: it passed without.
    PassedKeyless,
    /// It was for one of the layer's own pages.
    Page,
}

impl Verdict {
    /// What an execution can come to instead of an answer.
    pub const UNANSWERED: [Code; 8] = [
        Code::ExecutionNotStarted,
        Code::ExecutionUnanswered,
        Code::ExecutionTimedOut,
        Code::ExecutionPanicked,
        Code::DeadlinePassed,
        Code::KeyInFlight,
        Code::OutcomeInDoubt,
        Code::OutcomeNotRecorded,
    ];

    /// The word used in spans and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Executed => "executed",
            Self::TakenOver => "taken_over",
            Self::Unanswered(_) => "unanswered",
            Self::Queued => "queued",
            Self::Replayed => "replayed",
            Self::Busy => "busy",
            Self::InDoubt => "in_doubt",
            Self::Mismatch => "mismatch",
            Self::Gone => "gone",
            Self::Refused(_) => "refused",
            Self::Undecided => "undecided",
            Self::Unprotected => "unprotected",
            Self::Passed => "passed",
            Self::PassedKeyless => "passed_keyless",
            Self::Page => "page",
        }
    }

    pub(crate) fn of(begun: &Admission) -> Self {
        match begun {
            Admission::Execute(_) => Self::Executed,
            Admission::TakenOver { .. } => Self::TakenOver,
            Admission::Queued(_) => Self::Queued,
            Admission::Replay(_) => Self::Replayed,
            Admission::Busy { .. } => Self::Busy,
            Admission::InDoubt { .. } => Self::InDoubt,
            Admission::Mismatch(_) => Self::Mismatch,
            Admission::Gone { .. } => Self::Gone,
        }
    }

    /// The verdict on a request that was to be run, once there is something to tell its client.
    pub(crate) fn after<B>(self, response: &Response<B>) -> Self {
        let unanswered = response.extensions().get::<Unanswered>();
        unanswered.map_or(self, |Unanswered(code)| Self::Unanswered(*code))
    }
}

/// Marks what a client is told in place of an answer: an extension of that response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unanswered(pub(crate) Code);
