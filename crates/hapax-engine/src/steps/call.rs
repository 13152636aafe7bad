//! One step, as it is asked for.

use std::{fmt, pin::Pin, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Key, Step, StepName,
    retry::{Failure, Next, Schedule},
};
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::sleep;

use super::{
    error::{Cause, StepError, Stop},
    handle::{StepPlace, StepProgress, Steps},
};

/// A step that runs when it is awaited. Made by [`Steps::step`].
///
/// ```
/// use hapax_core::{Key, retry::Schedule};
/// use hapax_engine::{Probed, Run, WorkflowError};
///
/// # async fn charge(_: Key) -> Result<u32, std::io::Error> { Ok(7) }
/// # async fn find_charge(_: Key) -> Result<Option<u32>, std::io::Error> { Ok(None) }
/// async fn pay(run: &Run) -> Result<u32, WorkflowError> {
///     let charging = run.step("charge", charge).retry(Schedule::default());
///     // Before it is tried again: did it happen?
///     let charging = charging.probe(|key| async move {
///         match find_charge(key).await {
///             Ok(Some(receipt)) => Probed::Happened(receipt),
///             Ok(None) => Probed::DidNot,
///             Err(_) => Probed::Unknown,
///         }
///     });
///     Ok(charging.await?)
/// }
/// ```
#[must_use = "a step runs when it is awaited"]
pub struct StepCall<'a, T, E, F> {
    steps: &'a Steps,
    name: &'a str,
    run: F,
    version: u16,
    schedule: Option<Schedule>,
    retries: Box<dyn Fn(&E) -> bool + Send + Sync + 'a>,
    probe: Option<Probe<'a, T>>,
    migrate: Option<Migrate<'a, T>>,
}

type Probe<'a, T> = Box<dyn FnMut(Key) -> Answering<'a, Probed<T>> + Send + 'a>;
type Migrate<'a, T> = Box<dyn FnOnce(u16, &[u8]) -> Result<T, Cause> + Send + 'a>;
type Answering<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a probe found out about an effect.
///
/// ```
/// use hapax_engine::Probed;
///
/// /// What a provider's list of charges says about ours.
/// fn probed(found: std::io::Result<Option<u32>>) -> Probed<u32> {
///     match found {
///         Ok(Some(receipt)) => Probed::Happened(receipt),
///         Ok(None) => Probed::DidNot,
///         Err(_) => Probed::Unknown,
///     }
/// }
/// # assert_eq!(probed(Ok(Some(7))), Probed::Happened(7));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed<T> {
    /// It happened, and came to this.
    Happened(T),
    /// It did not happen, and will not: it is run.
    DidNot,
    /// That cannot be told now.
    Unknown,
}

impl<'a, T, E, F> StepCall<'a, T, E, F> {
    pub(super) fn new(steps: &'a Steps, name: &'a str, run: F) -> Self {
        Self {
            steps,
            name,
            run,
            version: 1,
            schedule: None,
            retries: Box::new(|_| true),
            probe: None,
            migrate: None,
        }
    }

    /// The version of the result's form; 1 if not given. To be raised whenever the form changes.
    pub fn version(self, version: u16) -> Self {
        Self { version, ..self }
    }

    /// Tries the effect again, as the schedule says, while the lease is renewed.
    pub fn retry(self, schedule: Schedule) -> Self {
        Self { schedule: Some(schedule), ..self }
    }

    /// Tries the effect again, as the schedule says, after errors for which `passes` is true.
    pub fn retry_if(
        self,
        schedule: Schedule,
        passes: impl Fn(&E) -> bool + Send + Sync + 'a,
    ) -> Self {
        Self { schedule: Some(schedule), retries: Box::new(passes), ..self }
    }

    /// Asks whether it happened before the effect is repeated: by another attempt, or by a retry.
    pub fn probe<P, Fut>(self, mut probe: P) -> Self
    where
        P: FnMut(Key) -> Fut + Send + 'a,
        Fut: Future<Output = Probed<T>> + Send + 'a,
    {
        Self { probe: Some(Box::new(move |key| Box::pin(probe(key)))), ..self }
    }

    /// Reads a result that was kept in another version: given that version and the JSON kept.
    pub fn migrate(self, migrate: impl FnOnce(u16, &[u8]) -> Result<T, Cause> + Send + 'a) -> Self {
        Self { migrate: Some(Box::new(migrate)), ..self }
    }
}

impl<'a, T, E, F, Fut> IntoFuture for StepCall<'a, T, E, F>
where
    T: Serialize + DeserializeOwned + Send + 'a,
    E: Send + 'a,
    F: FnMut(Key) -> Fut + Send + 'a,
    Fut: Future<Output = Result<T, E>> + Send + 'a,
{
    type Output = Result<T, StepError<E>>;
    type IntoFuture = Answering<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.perform())
    }
}

impl<T, E, F, Fut> StepCall<'_, T, E, F>
where
    T: Serialize + DeserializeOwned + Send,
    E: Send,
    F: FnMut(Key) -> Fut + Send,
    Fut: Future<Output = Result<T, E>> + Send,
{
    async fn perform(mut self) -> Result<T, StepError<E>> {
        let name = StepName::parse(self.name).map_err(Stop::Name)?;
        let steps = self.steps;
        let mut progress = steps.turn().await;
        match steps.place(&mut progress, &name).await? {
            StepPlace::Finished(step) => {
                let result = self.read(&step)?;
                progress.finished();
                Ok(result)
            }
            StepPlace::Open { number, repeated } => {
                // Refused here, and not after the effect.
                Step::new(number, name.clone(), self.version, Bytes::new())
                    .map_err(Stop::TooMany)?;
                let result = self.run(&mut progress, &name, repeated).await?;
                let step = self.seal(number, name, &result).inspect_err(|_| progress.stop())?;
                steps.keep(&mut progress, step).await?;
                Ok(result)
            }
        }
    }

    /// Runs the effect until it answers, asking before every repetition where that is possible.
    async fn run(
        &mut self,
        progress: &mut StepProgress,
        name: &StepName,
        mut repeated: bool,
    ) -> Result<T, StepError<E>> {
        let key = self.steps.key(name);
        let (mut attempt, mut previous) = (1, Duration::ZERO);
        loop {
            if let (true, Some(probe)) = (repeated, &mut self.probe) {
                match probe(key.clone()).await {
                    Probed::Happened(result) => return Ok(result),
                    Probed::DidNot => {}
                    Probed::Unknown => return Err(Stop::Unknown.into()),
                }
            }
            self.steps.begin(progress, name)?;
            let error = match (self.run)(key.clone()).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let Some(schedule) = self.schedule.filter(|_| (self.retries)(&error)) else {
                return Err(StepError::Failed(error));
            };
            let failure = Failure { attempt, previous, told: None, left: Duration::MAX };
            let Next::Wait(pause) = schedule.next(failure, self.steps.random()) else {
                return Err(StepError::Failed(error));
            };
            sleep(pause).await;
            (repeated, attempt, previous) = (true, attempt + 1, pause);
        }
    }

    fn seal(&self, number: u16, name: StepName, result: &T) -> Result<Step, Stop> {
        let json = serde_json::to_vec(result);
        let json = json.map_err(|error| Stop::NotKeepable(error.into()))?;
        let step = Step::new(number, name, self.version, json.into());
        step.map_err(|refusal| Stop::NotKeepable(refusal.into()))
    }

    fn read(&mut self, step: &Step) -> Result<T, Stop> {
        let (stored, asked) = (step.version(), self.version);
        let read = match self.migrate.take() {
            _ if stored == asked => serde_json::from_slice(step.result()).map_err(Cause::from),
            Some(migrate) => migrate(stored, step.result()),
            None => {
                return Err(Stop::VersionChanged { name: step.name().clone(), stored, asked });
            }
        };
        read.map_err(Stop::Unreadable)
    }
}

impl<T, E, F> fmt::Debug for StepCall<'_, T, E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCall").field("name", &self.name).finish_non_exhaustive()
    }
}
