//! Anything, once: a closure under a key.

use std::{pin::Pin, time::Duration};

use bytes::Bytes;
use hapax_core::{
    AttemptEnd, Body, InvalidName, InvalidPolicy, Key, Operation, OperationId, Outcome, Policy,
    Record, Recovery, RequestParts, RunMode, Scope, State, StoreError, Tenant,
    limits::OUTCOME_BODY_BYTES_MAX,
};
use hapax_engine::{Admission, BeginError, BeginRequest, Engine, Permit, Settled};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    comparison::JsonIgnoring,
    effect_error::{Cause, EffectError, EffectKnowledge},
    once_error::OnceError,
};

/// The names of an operation: scope and key, or tenant, scope and key.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{EffectError, Hapax, OnceError, OperationName};
///
/// async fn charge(hapax: &Hapax, name: OperationName<'_>, cents: u64) -> Result<u64, OnceError> {
///     hapax.once(name, &cents, || async move { Ok::<_, EffectError>(cents) }).await
/// }
///
/// let hapax = Hapax::open("memory:").await?;
/// assert_eq!(charge(&hapax, ("payments", "order-17").into(), 100).await?, 100);
/// // The same scope and key of another tenant is another operation.
/// assert_eq!(charge(&hapax, ("acme", "payments", "order-17").into(), 999).await?, 999);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy)]
pub struct OperationName<'a> {
    tenant: &'a str,
    scope: &'a str,
    key: &'a str,
}

/// The tenant of a program that has no others.
const TENANT: &str = "default";

impl<'a> From<(&'a str, &'a str)> for OperationName<'a> {
    fn from((scope, key): (&'a str, &'a str)) -> Self {
        Self { tenant: TENANT, scope, key }
    }
}

impl<'a> From<(&'a str, &'a str, &'a str)> for OperationName<'a> {
    fn from((tenant, scope, key): (&'a str, &'a str, &'a str)) -> Self {
        Self { tenant, scope, key }
    }
}

impl OperationName<'_> {
    fn parse(self) -> Result<Operation, InvalidName> {
        let (tenant, scope) = (Tenant::parse(self.tenant)?, Scope::parse(self.scope)?);
        Ok(Operation::new(tenant, scope, Key::parse(self.key)?))
    }
}

/// A call of [`Hapax::once`](crate::Hapax::once): await it, or say first what is special about it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Hapax, Recovery::Resend, days, secs};
///
/// # async fn charge() -> Result<u32, std::io::Error> { Ok(7) }
/// let hapax = Hapax::open("memory:").await?;
/// // The provider deduplicates by this key: it may be asked again after a crash.
/// let charged = hapax.once(("acme", "payments", "order-17"), "order-17", charge);
/// assert_eq!(charged.recover(Resend).retain(days(7)).wait(secs(5)).await?, 7);
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing runs until it is awaited"]
#[derive(Debug)]
pub struct Once<'a, W> {
    engine: &'a Engine,
    name: OperationName<'a>,
    request: Result<Value, serde_json::Error>,
    work: W,
    comparison: JsonIgnoring,
    policy: Result<Policy, InvalidPolicy>,
    wait: Duration,
}

impl<'a, W> Once<'a, W> {
    pub(crate) fn new(
        engine: &'a Engine,
        name: OperationName<'a>,
        request: Result<Value, serde_json::Error>,
        work: W,
    ) -> Self {
        let (comparison, policy) = (JsonIgnoring::default(), Ok(Policy::default()));
        Self { engine, name, request, work, comparison, policy, wait: Duration::ZERO }
    }

    /// What may be done if this process dies in mid-work or nobody knows how it ended:
    /// [`Recovery::Hold`] (the default) leaves a doubt that somebody resolves, [`Recovery::Resend`]
    /// runs the work again with the next call, for effects that deduplicate by the same key.
    ///
    /// [`Recovery::Probe`] is not for closures, which nobody can ask: it is treated as `Hold`.
    pub fn recover(self, recovery: Recovery) -> Self {
        let recovery = match recovery {
            Recovery::Resend => Recovery::Resend,
            Recovery::Probe | Recovery::Hold => Recovery::Hold,
        };
        Self { policy: self.policy.map(|policy| policy.recovering(recovery)), ..self }
    }

    /// How long the result is kept, from the first call on: 24 hours unless told otherwise.
    pub fn retain(self, window: Duration) -> Self {
        Self { policy: self.policy.and_then(|policy| policy.retaining(window)), ..self }
    }

    /// How long to wait while somebody else is at work on the same operation; not at all unless told
    /// otherwise.
    pub fn wait(self, longest: Duration) -> Self {
        Self { wait: longest, ..self }
    }

    /// What makes two requests the same: their whole JSON value unless told otherwise.
    pub fn compare(self, comparison: impl Into<JsonIgnoring>) -> Self {
        Self { comparison: comparison.into(), ..self }
    }

    async fn run<T, F, E>(self) -> Result<T, OnceError>
    where
        T: Serialize + DeserializeOwned,
        W: FnOnce() -> F,
        F: Future<Output = Result<T, E>>,
        E: Into<EffectError>,
    {
        let operation = self.name.parse()?;
        let policy = self.policy?;
        let request = self.request.map_err(OnceError::Request)?;
        let body = self.comparison.canonical(request);
        let request = RequestParts { body: &body, ..RequestParts::default() }.into();
        let ask = BeginRequest { operation, request, mode: RunMode::Run { request: None }, policy };
        match self.engine.begin_waiting(&ask, self.wait).await? {
            Admission::Execute(permit)
            | Admission::TakenOver { permit, recovery: Recovery::Resend } => {
                perform(permit, self.work).await
            }
            Admission::TakenOver { permit, .. } => {
                // Begun by somebody who could ask, which a closure cannot.
                let id = permit.attempt().id;
                permit.settle(AttemptEnd::NotRecovered).await?;
                Err(OnceError::InDoubt { id, cause: None })
            }
            Admission::Replay(record) => read(&record),
            Admission::Queued(_) => Err(OnceError::Busy { retry_after: Duration::ZERO }),
            Admission::Busy { lease_left, .. } => Err(OnceError::Busy { retry_after: lease_left }),
            Admission::InDoubt { .. } => {
                Err(OnceError::InDoubt { id: ask.operation.id(), cause: None })
            }
            Admission::Mismatch(difference) => Err(OnceError::OtherRequest(difference)),
            Admission::Gone { since } => Err(OnceError::Gone { since }),
        }
    }
}

impl<'a, T, W, F, E> IntoFuture for Once<'a, W>
where
    T: Serialize + DeserializeOwned + Send + 'a,
    W: FnOnce() -> F + Send + 'a,
    F: Future<Output = Result<T, E>> + Send + 'a,
    E: Into<EffectError> + Send + 'a,
{
    type Output = Result<T, OnceError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

async fn perform<T, W, F, E>(permit: Permit, work: W) -> Result<T, OnceError>
where
    T: Serialize + DeserializeOwned,
    W: FnOnce() -> F,
    F: Future<Output = Result<T, E>>,
    E: Into<EffectError>,
{
    let id = permit.attempt().id;
    let (ended, result) = match work().await.map_err(Into::into) {
        Ok(value) => match outcome(serde_json::to_vec(&value)) {
            Ok(outcome) => (AttemptEnd::completed(outcome), Ok(value)),
            Err(error) => unknown(id, error.into()),
        },
        Err(EffectError { known: EffectKnowledge::NotSent, cause }) => {
            (AttemptEnd::NothingSent, Err(OnceError::NotSent(cause)))
        }
        Err(EffectError { known: EffectKnowledge::Nothing, cause }) => unknown(id, cause),
        Err(EffectError { known: EffectKnowledge::Final, cause }) => {
            let message = cause.to_string();
            match outcome(serde_json::to_vec(&message)) {
                Ok(outcome) => {
                    let failed = OnceError::Failed { message, cause: Some(cause) };
                    (AttemptEnd::failed(outcome), Err(failed))
                }
                Err(error) => unknown(id, error.into()),
            }
        }
    };
    match permit.settle(ended).await? {
        Settled::Done(_) => result,
        Settled::Superseded(Some(record)) => read(&record),
        Settled::Superseded(None) => Err(OnceError::InDoubt { id, cause: None }),
    }
}

/// Nobody knows whether the effect happened, or what it came to.
fn unknown<T>(id: OperationId, cause: Cause) -> (AttemptEnd, Result<T, OnceError>) {
    (AttemptEnd::Unanswered, Err(OnceError::InDoubt { id, cause: Some(cause) }))
}

/// What is stored of a result; one that is too large leaves only that there was one.
fn outcome(written: Result<Vec<u8>, serde_json::Error>) -> Result<Outcome, OnceError> {
    let written = written.map_err(OnceError::Result)?;
    if written.len() > OUTCOME_BODY_BYTES_MAX {
        let len = u64::try_from(written.len()).unwrap_or(u64::MAX);
        return Ok(Outcome::value_not_kept(len));
    }
    Outcome::value(Bytes::from(written)).map_err(OnceError::TooLarge)
}

const ENCRYPTED: &str = "its result is encrypted, and no master key was given to read it";

/// What a record says to somebody who asks again.
fn read<T: DeserializeOwned>(record: &Record) -> Result<T, OnceError> {
    let id = record.operation.id();
    let kept = |outcome: &Outcome| match outcome.body() {
        Body::Kept(bytes) => Ok(bytes.clone()),
        Body::NotKept { len } => Err(OnceError::NotKept { len: *len }),
        Body::Sealed { .. } => {
            Err(OnceError::Store(BeginError::Store(StoreError::damaged(ENCRYPTED))))
        }
        _ => Err(OnceError::InDoubt { id, cause: None }),
    };
    match &record.state {
        State::Completed { outcome } => {
            serde_json::from_slice(&kept(outcome)?).map_err(OnceError::Result)
        }
        State::Failed { outcome } => {
            let kept = kept(outcome)?;
            // What another front end stored is told as it is.
            let message = serde_json::from_slice(&kept)
                .unwrap_or_else(|_| String::from_utf8_lossy(&kept).into_owned());
            Err(OnceError::Failed { message, cause: None })
        }
        State::Pending { .. } | State::Running { .. } => {
            Err(OnceError::Busy { retry_after: Duration::ZERO })
        }
        State::InDoubt { .. } | State::Released | State::Buried => {
            Err(OnceError::InDoubt { id, cause: None })
        }
    }
}
