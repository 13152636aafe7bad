//! How a layer runs what it protects: under a lease of the engine, or in a transaction of the handler's.

use std::sync::Arc;

use hapax_core::Operation;
use hapax_engine::Engine;
use http::{Response, request::Parts};

use super::{
    dialect::Dialect,
    execution::{admission::ask, usual_time::UsualTime},
    options::Protection,
    requests::{
        arrival::KeyedRequest,
        front::Front,
        repeatability,
        route::{InvalidRoute, Routes},
    },
    responses::{answer, async_status, problem::Problem},
    service::Judged,
};
use crate::{body::Body, http_service::HttpService};

/// How a layer runs what it protects: [`Leased`] or [`SameTransaction`](crate::SameTransaction).
#[expect(private_bounds, reason = "the modes are the layer's own")]
pub trait Mode: ModeBehaviour {}

impl<M: ModeBehaviour> Mode for M {}

/// What differs between the modes, behind the front that they share.
pub(crate) trait ModeBehaviour: Clone + Send + Sync + 'static {
    /// Whether requests can be run without their client.
    fn has_later(&self) -> bool;

    /// Refuses routes that it cannot serve.
    fn check(&self, routes: &Routes) -> Result<(), InvalidRoute>;

    /// What keeps operations beyond the request that runs them, where something does.
    fn engine(&self) -> Option<&Engine>;

    /// The operation, unless it may have been done and forgotten since it was first asked for.
    fn recall(
        &self,
        protection: &Protection,
        parts: &Parts,
        operation: Operation,
    ) -> impl Future<Output = Result<Operation, Problem>> + Send;

    /// What is seen at the address of an operation; `None` if operations have none.
    fn operation_page(
        &self,
        front: &Front,
        parts: &Parts,
        id: &str,
    ) -> impl Future<Output = Option<Response<Body>>> + Send;

    /// Runs a request, or finds out why it must not be run.
    fn run<Inner: HttpService>(
        &self,
        front: &Front,
        inner: Inner,
        usual_time: &Arc<UsualTime>,
        arrival: KeyedRequest,
    ) -> impl Future<Output = Result<Judged, Inner::Error>> + Send;
}

/// Operations run under a lease, which the engine looks after: for effects anywhere.
#[derive(Debug, Clone)]
pub struct Leased {
    pub(crate) engine: Engine,
    /// Whether requests can be run without their client.
    pub(crate) has_later: bool,
}

impl ModeBehaviour for Leased {
    fn has_later(&self) -> bool {
        self.has_later
    }

    fn check(&self, routes: &Routes) -> Result<(), InvalidRoute> {
        if routes.accepts_for_later() && !self.has_later {
            return Err(InvalidRoute::NobodyForLater);
        }
        Ok(())
    }

    fn engine(&self) -> Option<&Engine> {
        Some(&self.engine)
    }

    async fn recall(
        &self,
        protection: &Protection,
        parts: &Parts,
        operation: Operation,
    ) -> Result<Operation, Problem> {
        if protection.dialect != Dialect::Repeatability {
            return Ok(operation);
        }
        let first_sent = repeatability::first_sent(&parts.headers)?;
        let retention = protection.policy.retention();
        match repeatability::check(&self.engine, operation.id(), first_sent, retention).await {
            Ok(None) => Ok(operation),
            Ok(Some(problem)) => Err(problem),
            Err(error) => Err(answer::store_failed(&error)),
        }
    }

    async fn operation_page(
        &self,
        front: &Front,
        parts: &Parts,
        id: &str,
    ) -> Option<Response<Body>> {
        Some(async_status::look(&self.engine, front, parts, id).await)
    }

    fn run<Inner: HttpService>(
        &self,
        front: &Front,
        inner: Inner,
        usual_time: &Arc<UsualTime>,
        arrival: KeyedRequest,
    ) -> impl Future<Output = Result<Judged, Inner::Error>> + Send {
        ask(inner, (&self.engine, front), usual_time, arrival)
    }
}
