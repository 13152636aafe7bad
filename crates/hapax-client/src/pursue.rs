//! One operation, sent until it is answered or its time is over.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::poll_fn;
use hapax_core::{
    Key,
    retry::{AttemptHistory, Conclusion},
};
use hapax_tower::{
    Body, BoxError, Captured, IDEMPOTENCY_KEY, capture,
    client::{Patience, Pursuit, RetryError, Tried, Watch},
};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, response};
use tokio::time::{Instant, sleep, timeout_at};
use tower_service::Service;
use tracing::Instrument;

use crate::{
    answer::{Answer, NotKept, Warning},
    call::InvalidCall,
    client::Shared,
    error::{CallError, LastAnswer, LoggedAddress, Unfinished, WindowPassed},
    journal::Name,
    transport::Transport,
    window::{RetentionWindow, Windows},
};

/// How long after its first sending an operation is asked for without knowing the server's window.
pub(crate) const WINDOW_UNREAD_FOR: Duration = Duration::from_secs(10);
/// How soon a window that could not be read is asked for again.
const WINDOW_PAUSE: Duration = Duration::from_secs(10);

/// Everything needed to pursue an operation.
pub(crate) struct PursuitRequest {
    pub(crate) name: Option<Name>,
    pub(crate) key: Option<Key>,
    pub(crate) method: Method,
    pub(crate) url: Uri,
    /// What the request says by itself; the client's headers fill the gaps.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) deadline: Duration,
    pub(crate) before: EarlierAttempts,
    pub(crate) watch: Option<Arc<dyn Watch>>,
}

/// What was done for an operation before it was taken up here.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EarlierAttempts {
    pub(crate) attempts: u32,
    /// How long ago it may have been sent for the first time.
    pub(crate) sent: Option<Duration>,
}

/// Sends it, and again, until there is something to say.
pub(crate) async fn pursue<T: Transport>(
    shared: &Shared<T>,
    errand: PursuitRequest,
) -> Result<Answer, CallError> {
    let span = tracing::info_span!(
        "call",
        name = errand.name.as_ref().map(tracing::field::display),
        key = errand.key.as_ref().map(Key::as_str),
        method = %errand.method,
        url = %LoggedAddress(&errand.url),
    );
    let exchange = async {
        if let Some(passed) = already_forgotten(shared.windows.as_ref(), &errand).await {
            return Err(passed);
        }
        tokio::select! {
            biased;
            ended = exchange(shared, &errand) => ended,
            passed = forgotten(shared.windows.as_ref(), &errand) => Err(passed),
        }
    };
    let mut ended = exchange.instrument(span).await;
    if let Some(warning) = beyond_window(shared.windows.as_ref(), &errand) {
        warn(&mut ended, warning);
    }
    ended
}

/// Adds what should be known to an answer, whatever it says.
pub(crate) fn warn(ended: &mut Result<Answer, CallError>, warning: Warning) {
    match ended {
        Ok(answer) => answer.warnings.push(warning),
        Err(CallError::Refused(answer)) => answer.warnings.push(warning),
        Err(_) => {}
    }
}

async fn exchange<T: Transport>(
    shared: &Shared<T>,
    errand: &PursuitRequest,
) -> Result<Answer, CallError> {
    let ends = Instant::now() + errand.deadline;
    let mut retry = shared.retry.clone();
    let sent = async {
        poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut retry, cx)).await?;
        retry.call(errand.request(shared)).await
    };
    match sent.await {
        Ok(response) => {
            let bytes_max = shared.options.response_bytes_max;
            let (parts, body) = response.into_parts();
            let body = timeout_at(ends, read(body, bytes_max)).await;
            let body = body.unwrap_or_else(|_| Err("the answer took too long".into()));
            errand.answered(parts, body)
        }
        Err(error) => Err(errand.unanswered(error)),
    }
}

/// Whether the server has forgotten the key of an operation that was sent long ago.
async fn already_forgotten<T: Transport>(
    windows: Option<&Windows<T>>,
    errand: &PursuitRequest,
) -> Option<CallError> {
    let age = errand.before.sent.filter(|age| *age >= WINDOW_UNREAD_FOR)?;
    match windows?.of(&errand.method, &errand.url).await {
        RetentionWindow::Published(window) if age >= window => errand.passed(age, window),
        RetentionWindow::Published(_)
        | RetentionWindow::NotPublished
        | RetentionWindow::Unreadable => None,
    }
}

/// Ends when the server forgets the key; never, if it publishes no window.
async fn forgotten<T: Transport>(
    windows: Option<&Windows<T>>,
    errand: &PursuitRequest,
) -> CallError {
    let Some(windows) = windows.filter(|_| errand.key.is_some()) else { return pending().await };
    let (started, sent) = (Instant::now(), errand.before.sent.unwrap_or_default());
    sleep(WINDOW_UNREAD_FOR.saturating_sub(sent)).await;
    loop {
        match windows.of(&errand.method, &errand.url).await {
            RetentionWindow::Published(window) => {
                tokio::time::sleep_until(started + window.saturating_sub(sent)).await;
                match errand.passed(sent + started.elapsed(), window) {
                    Some(passed) => return passed,
                    None => return pending().await,
                }
            }
            RetentionWindow::NotPublished => return pending().await,
            RetentionWindow::Unreadable => sleep(WINDOW_PAUSE).await,
        }
    }
}

fn beyond_window<T: Transport>(
    windows: Option<&Windows<T>>,
    errand: &PursuitRequest,
) -> Option<Warning> {
    let deadline = errand.deadline;
    let window = windows?.known(&errand.method, &errand.url)?;
    errand.key.as_ref().filter(|_| window < deadline)?;
    let warning = Warning::DeadlineBeyondWindow { deadline, window };
    tracing::warn!(url = %LoggedAddress(&errand.url), "{warning}");
    Some(warning)
}

/// A body, or how large it was.
type Read = Result<Bytes, NotKept>;

/// A body as far as it is kept; an error if it broke off.
async fn read(body: Body, bytes_max: usize) -> Result<Read, BoxError> {
    Ok(match capture(body, bytes_max).await? {
        Captured::Whole(bytes) => Ok(bytes),
        Captured::Larger { read, rest } => {
            let read = u64::try_from(read.len()).unwrap_or(u64::MAX);
            let rest = http_body::Body::size_hint(&rest).lower();
            Err(NotKept { len: read.saturating_add(rest) })
        }
    })
}

impl PursuitRequest {
    fn request<T>(&self, shared: &Shared<T>) -> Request<Body> {
        let mut request = Request::new(Body::from(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.clone();
        let mut headers = self.headers.clone();
        for (name, value) in &shared.headers {
            if !self.headers.contains_key(name) {
                headers.append(name, value.clone());
            }
        }
        if let Some(key) = self.key.as_ref().and_then(quoted) {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        *request.headers_mut() = headers;
        let history = if self.before.sent.is_some() {
            AttemptHistory::taken_over()
        } else {
            AttemptHistory::new()
        };
        let (deadline, watch) = (Some(self.deadline), self.watch.clone());
        // What has a name is wanted until its deadline, whether or not somebody waits for it.
        let (schedule, patience) = match self.name {
            Some(_) => (Some(shared.named), Patience::UntilDeadline),
            None => (None, Patience::None),
        };
        request.extensions_mut().insert(Pursuit { deadline, schedule, patience, history, watch });
        request
    }

    fn passed(&self, age: Duration, window: Duration) -> Option<CallError> {
        let (name, key) = (self.name.clone(), self.key.clone()?);
        Some(CallError::WindowPassed(Box::new(WindowPassed { name, key, age, window })))
    }

    fn answered(
        &self,
        parts: response::Parts,
        body: Result<Read, BoxError>,
    ) -> Result<Answer, CallError> {
        let Some(tried) = parts.extensions.get::<Tried>() else {
            return Err(self.unfinished(
                Conclusion::Unknown,
                0,
                None,
                "the layer says nothing".into(),
            ));
        };
        let body = match body {
            Ok(body) => body,
            // Only what reads is handed on before it is whole, or what is too large to be kept.
            Err(error) if self.method.is_safe() => {
                return Err(self.unfinished(Conclusion::GaveUp, tried.attempts, None, error));
            }
            Err(_) => Err(NotKept { len: 0 }),
        };
        let warnings = body.as_ref().err().copied().map(Warning::NotKept).into_iter().collect();
        let answer = Answer {
            status: parts.status,
            headers: parts.headers,
            body,
            key: self.key.clone(),
            attempts: self.before.attempts.saturating_add(tried.attempts),
            replayed: tried.replayed,
            recorded: false,
            warnings,
        };
        match tried.conclusion {
            Conclusion::Done => Ok(answer),
            Conclusion::Refused => Err(CallError::Refused(Box::new(answer))),
            conclusion @ (Conclusion::Unknown | Conclusion::GaveUp) => {
                let ended = LastAnswer { status: answer.status, stop: tried.stop };
                let answer = Some(Box::new(answer));
                Err(self.unfinished(conclusion, tried.attempts, answer, ended.into()))
            }
        }
    }

    fn unanswered(&self, error: RetryError) -> CallError {
        if let RetryError::Invalid(invalid) = error {
            return CallError::Invalid(InvalidCall::Request(invalid));
        }
        let gave_up = matches!(error, RetryError::GaveUp { .. });
        let conclusion = if gave_up { Conclusion::GaveUp } else { Conclusion::Unknown };
        let attempts = error.tried().map_or(0, |tried| tried.attempts);
        self.unfinished(conclusion, attempts, None, error.into())
    }

    fn unfinished(
        &self,
        conclusion: Conclusion,
        attempts: u32,
        answer: Option<Box<Answer>>,
        reason: BoxError,
    ) -> CallError {
        let unfinished = Box::new(Unfinished {
            name: self.name.clone(),
            key: self.key.clone(),
            method: self.method.clone(),
            url: self.url.clone(),
            attempts: self.before.attempts.saturating_add(attempts),
            answer,
            reason,
        });
        match conclusion {
            Conclusion::GaveUp => CallError::GaveUp(unfinished),
            Conclusion::Done | Conclusion::Refused | Conclusion::Unknown => {
                CallError::Unknown(unfinished)
            }
        }
    }
}

/// The key as a string of RFC 9651.
fn quoted(key: &Key) -> Option<HeaderValue> {
    let escaped = key.as_str().replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::try_from(format!("\"{escaped}\"")).ok()
}
