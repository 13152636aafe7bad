//! What the caller says about its time and about retries, and what the service is told of it.

use std::time::Duration;

use http::{HeaderMap, Request};
use tokio::time::Instant;

use crate::{
    server::{
        requests::headers,
        responses::{code::Code, problem::Problem},
    },
    signal,
};

/// Until when the caller of a request waits: an extension of every request whose caller says so.
///
/// The layer writes what is left of it into the head when it hands the request over. A service that
/// keeps requests waiting, such as a pool of connections, says it again when it sends them.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_tower::{AnswerBy, Body};
/// use http::Request;
///
/// /// How long a service may work on a request whose caller may have said when it leaves.
/// fn limit(request: &Request<Body>) -> Duration {
///     let usual = Duration::from_secs(10);
///     request.extensions().get::<AnswerBy>().map_or(usual, |by| by.left().min(usual))
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerBy {
    at: Instant,
    /// Whether it is also said in the words of gRPC.
    grpc: bool,
}

impl AnswerBy {
    /// When the caller is gone.
    pub fn at(self) -> Instant {
        self.at
    }

    /// How long it still waits; zero once it is gone.
    pub fn left(self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    /// The earlier of this and the end of a span that begins now: inward, time only shrinks.
    #[must_use]
    pub fn within(self, span: Duration) -> Self {
        let end = Instant::now().checked_add(span);
        Self { at: end.map_or(self.at, |end| end.min(self.at)), ..self }
    }

    /// Writes what is left into the head of a request.
    pub fn say(self, headers: &mut HeaderMap) {
        let left = self.left();
        signal::set_time_left(headers, left);
        if self.grpc {
            signal::set_grpc_time_left(headers, left);
        }
    }
}

/// What a caller says to this hop, or this hop to the next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallerSignals {
    answer_by: Option<AnswerBy>,
    /// Somebody further out repeats the request, so nobody here does.
    pub(crate) retried_further_out: bool,
}

impl CallerSignals {
    /// Reads what the caller says, counted from now, and removes it together with everything that
    /// only this layer may say: it is passed on as it was understood, never as it came.
    pub(crate) fn take(headers: &mut HeaderMap, grpc: bool) -> Result<Self, Problem> {
        let mut left = None;
        let mut retried_further_out = false;
        if headers.keys().any(headers::is_ours) {
            let read = signal::time_left(headers);
            retried_further_out = signal::is_retried_further_out(headers);
            headers::strip_ours(headers);
            headers.remove(headers::REFUSAL);
            headers.remove(headers::DIALECT);
            left = read.map_err(|malformed| refused(&malformed))?;
        }
        if grpc {
            let spelled =
                signal::grpc_time_left(headers).map_err(|malformed| refused(&malformed))?;
            headers.remove(signal::GRPC_TIMEOUT);
            left = left.into_iter().chain(spelled).min();
        }
        // A time beyond what a clock can show is no limit.
        let at = left.and_then(|left| Instant::now().checked_add(left));
        let said = Self { answer_by: at.map(|at| AnswerBy { at, grpc }), retried_further_out };
        if said.is_over() { Err(too_late()) } else { Ok(said) }
    }

    /// What this hop says when it repeats a request by itself: it waits this long, and nobody
    /// further in repeats as well.
    pub(crate) fn repeating(timeout: Duration, grpc: bool) -> Self {
        let at = Instant::now().checked_add(timeout);
        Self { answer_by: at.map(|at| AnswerBy { at, grpc }), retried_further_out: true }
    }

    /// The same, waiting no longer than this from now.
    pub(crate) fn within(self, span: Duration) -> Self {
        Self { answer_by: self.answer_by.map(|by| by.within(span)), ..self }
    }

    /// When the caller is gone, if it said so.
    pub(crate) fn until(self) -> Option<Instant> {
        self.answer_by.map(AnswerBy::at)
    }

    /// Whether the caller is gone.
    pub(crate) fn is_over(self) -> bool {
        self.answer_by.is_some_and(|by| by.left().is_zero())
    }

    /// This span, or what is left if that is less.
    pub(crate) fn cut(self, span: Duration) -> Duration {
        self.answer_by.map_or(span, |by| by.left().min(span))
    }

    /// Tells the service that gets this request now.
    pub(crate) fn tell<B>(self, request: &mut Request<B>) {
        if self.retried_further_out {
            signal::set_retried_further_out(request.headers_mut());
        }
        if let Some(by) = self.answer_by {
            by.say(request.headers_mut());
            request.extensions_mut().insert(by);
        }
    }
}

/// The refusal of a caller that is gone: nothing was run for it.
pub(crate) fn too_late() -> Problem {
    let detail = "The time given was over before anything was run. Ask again, and give more.";
    Problem::new(Code::DeadlinePassed, detail)
}

fn refused(malformed: &signal::MalformedTime) -> Problem {
    Problem::new(Code::DeadlineMalformed, format!("{malformed}."))
}
