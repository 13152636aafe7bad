//! Which code runs which operations.

use std::{fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use hapax_core::{
    AttemptAnswer, Operation, Policy, Recovery, RequestParts, RunMode, limits::REQUEST_BYTES_MAX,
};

use super::{
    error::{RunError, WorkflowError},
    run::{Ran, Run, perform, superseded},
};
use crate::{
    begin::{Admission, BeginRequest},
    engine::Engine,
    options::Finisher,
    permit::Permit,
};

/// What is to be done for operations of several effects, by scope.
///
/// The same function runs an operation for its client ([`Workflows::run`]) and resumes it when its
/// owner is gone ([`Workflows::finisher`]): it is asked again from its beginning, and every step that
/// is finished answers from what is kept. Clones share everything.
///
/// ```
/// use hapax_core::{AttemptAnswer, Outcome, Policy};
/// use hapax_engine::{Engine, Options, Ran, Workflows};
///
/// # async fn charge(_: hapax_core::Key) -> Result<u32, std::io::Error> { Ok(7) }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # use hapax_core::{Key, Operation, Scope, Tenant};
/// # let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// # let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// let payments = Workflows::new().on("payments", Policy::default(), |run| async move {
///     run.step("charge", charge).await?;
///     Ok(AttemptAnswer::completed(Outcome::bare(201)))
/// });
/// let finisher = Some(payments.finisher());
/// let engine = Engine::start(store, Options { finisher, ..Options::default() });
/// let ran = payments.run(&engine, &operation, "pay 100".into()).await?;
/// assert!(matches!(ran, Ran::Answered(_)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Workflows {
    all: Vec<Arc<Workflow>>,
}

pub(super) struct Workflow {
    scopes: Scopes,
    policy: Policy,
    pub(super) work: Box<Work>,
}

type Work = dyn Fn(Run) -> Working + Send + Sync;
type Working = Pin<Box<dyn Future<Output = Result<AttemptAnswer, WorkflowError>> + Send>>;

enum Scopes {
    Exactly(String),
    StartingWith(String),
}

impl Workflows {
    /// None yet.
    pub fn new() -> Self {
        Self { all: Vec::new() }
    }

    /// Runs operations of these scopes: a scope, or the beginning of some followed by `*`. Where
    /// several fit, the first counts.
    ///
    /// Whatever the policy says of recovery, an abandoned operation is run again under the same keys.
    #[must_use]
    pub fn on<F>(
        mut self,
        scopes: &str,
        policy: Policy,
        work: impl Fn(Run) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<AttemptAnswer, WorkflowError>> + Send + 'static,
    {
        let scopes = match scopes.strip_suffix('*') {
            Some(beginning) => Scopes::StartingWith(beginning.to_owned()),
            None => Scopes::Exactly(scopes.to_owned()),
        };
        let policy = policy.recovering(Recovery::Resend);
        let work = Box::new(move |run| -> Working { Box::pin(work(run)) });
        self.all.push(Arc::new(Workflow { scopes, policy, work }));
        self
    }

    /// What finishes abandoned operations of these scopes, without waiting for a client: to be given
    /// to the engine as [`Options::finisher`](crate::Options::finisher).
    pub fn finisher(&self) -> Finisher {
        let (serving, finding, finishing) = (self.clone(), self.clone(), self.clone());
        let policy_of = move |record: &hapax_core::Record| {
            finding.find(&record.operation).map_or_else(Policy::default, |found| found.policy)
        };
        let finish = move |permit: Permit, _| {
            let workflow = finishing.find(&permit.record().operation);
            async move {
                let Some(workflow) = workflow else { return };
                let id = permit.attempt().id;
                if let Err(error) = perform(&workflow, permit).await {
                    tracing::error!(operation = %id, %error, "a workflow ran, and its end was not recorded");
                }
            }
        };
        let serves = move |record: &hapax_core::Record| serving.find(&record.operation).is_some();
        Finisher::new(policy_of, finish).only(serves)
    }

    /// Brings an operation and its request: runs it, or says what became of it.
    ///
    /// The request is kept, so that the operation can be finished without its client. Dropping the
    /// returned future does not stop what has begun.
    pub async fn run(
        &self,
        engine: &Engine,
        operation: &Operation,
        request: Bytes,
    ) -> Result<Ran, RunError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(RunError::RequestTooLarge { len: request.len() });
        }
        let missing = || RunError::NoWorkflow { scope: operation.scope().as_str().to_owned() };
        let workflow = self.find(operation).ok_or_else(missing)?;
        let parts = RequestParts { body: &request, ..RequestParts::default() };
        let ask = BeginRequest {
            operation: operation.clone(),
            request: parts.into(),
            mode: RunMode::Run { request: Some(request.clone()) },
            policy: workflow.policy,
        };
        match engine.begin(&ask).await? {
            Admission::Execute(permit) | Admission::TakenOver { permit, .. } => {
                let running = tokio::spawn(async move { perform(&workflow, permit).await });
                Ok(running.await.map_err(|_| RunError::Cut)??)
            }
            Admission::Replay(record) => Ok(superseded(Some(&record))),
            Admission::Busy { lease_left, .. } => Ok(Ran::Busy { lease_left }),
            Admission::Queued(_) => Ok(Ran::Busy { lease_left: workflow.policy.lease() }),
            Admission::InDoubt { doubt } => Ok(Ran::InDoubt { doubt }),
            Admission::Mismatch(difference) => Ok(Ran::Mismatch(difference)),
            Admission::Gone { since } => Ok(Ran::Gone { since }),
        }
    }

    fn find(&self, operation: &Operation) -> Option<Arc<Workflow>> {
        let scope = operation.scope().as_str();
        let found = self.all.iter().find(|workflow| match &workflow.scopes {
            Scopes::Exactly(exact) => scope == exact,
            Scopes::StartingWith(beginning) => scope.starts_with(beginning),
        });
        found.map(Arc::clone)
    }
}

impl fmt::Debug for Workflows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflows").field("count", &self.all.len()).finish()
    }
}
