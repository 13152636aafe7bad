//! Which code runs which operations.

use std::{fmt, pin::Pin, sync::Arc};

use bytes::Bytes;
use hapax_core::{
    Operation, Outcome, Policy, Recovery, RequestParts, Store, Wish, limits::REQUEST_BYTES_MAX,
};

use super::{
    error::{RunError, WorkflowError},
    run::{Ran, Run, perform, superseded},
};
use crate::{
    begin::{Ask, Begun},
    engine::Engine,
    options::Finisher,
    permit::Permit,
};

/// What is to be done for operations of several effects, by scope.
///
/// The same function runs an operation for its client ([`Workflows::run`]) and resumes it when its
/// owner is gone ([`Workflows::finisher`]): it is asked again from its beginning, and every step that
/// is finished answers from what is kept. Clones share everything.
pub struct Workflows<S: Store> {
    all: Vec<Arc<Workflow<S>>>,
}

pub(super) struct Workflow<S: Store> {
    scopes: Scopes,
    policy: Policy,
    pub(super) work: Box<Work<S>>,
}

type Work<S> = dyn Fn(Run<S>) -> Working + Send + Sync;
type Working = Pin<Box<dyn Future<Output = Result<Outcome, WorkflowError>> + Send>>;

enum Scopes {
    Exactly(String),
    StartingWith(String),
}

impl<S: Store> Workflows<S> {
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
        work: impl Fn(Run<S>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<Outcome, WorkflowError>> + Send + 'static,
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
    pub fn finisher(&self) -> Finisher<S> {
        let (serving, finding, finishing) = (self.clone(), self.clone(), self.clone());
        let policy_of = move |record: &hapax_core::Record| {
            finding.find(&record.operation).map_or_else(Policy::default, |found| found.policy)
        };
        let finish = move |permit: Permit<S>, _| {
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
        engine: &Engine<S>,
        operation: &Operation,
        request: Bytes,
    ) -> Result<Ran, RunError> {
        if request.len() > REQUEST_BYTES_MAX {
            return Err(RunError::RequestTooLarge { len: request.len() });
        }
        let missing = || RunError::NoWorkflow { scope: operation.scope().as_str().to_owned() };
        let workflow = self.find(operation).ok_or_else(missing)?;
        let parts = RequestParts { body: &request, ..RequestParts::default() };
        let ask = Ask {
            operation: operation.clone(),
            fingerprint: engine.salt().tenant_key(operation.tenant()).fingerprint(&parts),
            wish: Wish::Run { request: Some(request) },
            policy: workflow.policy,
        };
        match engine.begin(&ask).await? {
            Begun::Execute(permit) | Begun::TakenOver { permit, .. } => {
                let running = tokio::spawn(async move { perform(&workflow, permit).await });
                Ok(running.await.map_err(|_| RunError::Cut)??)
            }
            Begun::Replay(record) => Ok(superseded(Some(&record))),
            Begun::Busy { lease_left, .. } => Ok(Ran::Busy { lease_left }),
            Begun::Queued(_) => Ok(Ran::Busy { lease_left: workflow.policy.lease() }),
            Begun::InDoubt { doubt } => Ok(Ran::InDoubt { doubt }),
            Begun::Mismatch(difference) => Ok(Ran::Mismatch(difference)),
            Begun::Gone { since } => Ok(Ran::Gone { since }),
        }
    }

    fn find(&self, operation: &Operation) -> Option<Arc<Workflow<S>>> {
        let scope = operation.scope().as_str();
        let found = self.all.iter().find(|workflow| match &workflow.scopes {
            Scopes::Exactly(exact) => scope == exact,
            Scopes::StartingWith(beginning) => scope.starts_with(beginning),
        });
        found.map(Arc::clone)
    }
}

impl<S: Store> Default for Workflows<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Store> Clone for Workflows<S> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone() }
    }
}

impl<S: Store> fmt::Debug for Workflows<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workflows").field("count", &self.all.len()).finish()
    }
}
