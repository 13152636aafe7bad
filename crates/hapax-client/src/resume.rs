//! Finishing what an earlier run began.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use hapax_core::retry::Conclusion;
use hapax_tower::client::Watch;
use http::HeaderName;

use crate::{
    answer::Answer,
    call::InvalidCall,
    client::Client,
    error::CallError,
    journal::{
        EntryFilter, EntryStateTag, Journal, JournalRequest, Name, PursuitAdmission, TakeUp,
    },
    journal_answer,
    lease::AttemptLog,
    named_operation::{PursueContext, carry},
    pursuit_registry::PursuitTurn,
    send,
    transport::{Reqwest, Transport},
};

/// How many operations are resumed at the same time.
const AT_ONCE_MAX: usize = 8;
/// What an operation has at least to be asked for once more, whatever was left of its deadline.
const TIME_MIN: Duration = Duration::from_secs(10);

/// What a resume came to.
///
/// ```
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let client = Client::builder().journal(file).build_on(app)?;
/// let report = client.resume().await?;
/// for operation in &report.unknown {
///     println!("{operation} may have happened");
/// }
/// assert!(report.is_finished());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ResumeReport {
    /// Answered with a yes.
    pub done: Vec<Name>,
    /// Answered with a no.
    pub refused: Vec<Name>,
    /// May have happened, and nobody said.
    pub unknown: Vec<Name>,
    /// Did not happen.
    pub gave_up: Vec<Name>,
    /// Pursued by somebody else.
    pub held: Vec<Name>,
    /// Not sent, and still pending: without credentials, or not readable.
    pub left: Vec<UnresumedOperation>,
}

/// An operation that could not be resumed, and why.
#[derive(Debug)]
pub struct UnresumedOperation {
    /// The operation; `None` if not even its name can be read.
    pub name: Option<Name>,
    /// Why.
    pub error: CallError,
}

impl ResumeReport {
    /// Whether everything that was pending has been answered.
    pub fn is_finished(&self) -> bool {
        self.unknown.is_empty()
            && self.gave_up.is_empty()
            && self.held.is_empty()
            && self.left.is_empty()
    }

    fn add(&mut self, name: Name, ended: Result<Answer, CallError>) {
        let Err(error) = ended else { return self.done.push(name) };
        match (error.conclusion(), &error) {
            (Some(Conclusion::Done), _) => self.done.push(name),
            (Some(Conclusion::Refused), _) => self.refused.push(name),
            (Some(Conclusion::Unknown), _) => self.unknown.push(name),
            (Some(Conclusion::GaveUp), _) => self.gave_up.push(name),
            (None, CallError::Held { .. }) => self.held.push(name),
            (None, _) => self.left.push(UnresumedOperation { name: Some(name), error }),
        }
    }
}

/// Everything that is pending.
pub(crate) async fn all<T: Transport>(client: &Client<T>) -> Result<ResumeReport, CallError> {
    let journal = client.journal()?;
    let mut summary = ResumeReport::default();
    let mut filter = EntryFilter { state: Some(EntryStateTag::Pending), ..EntryFilter::default() };
    loop {
        let page = journal.list(filter).await?;
        let Some(last) = page.last() else { return Ok(summary) };
        filter.after = Some(last.position);
        let mut names = Vec::new();
        for listed in page {
            match listed.entry {
                Ok(entry) if entry.held.is_some() => summary.held.push(entry.name),
                Ok(entry) => names.push(entry.name),
                Err(error) => {
                    summary
                        .left
                        .push(UnresumedOperation { name: None, error: CallError::Journal(error) });
                }
            }
        }
        let mut ended = stream::iter(names)
            .map(|name| async move {
                let ended = one(client, journal, &name, (TakeUp::Pending, None)).await;
                (name, ended)
            })
            .buffer_unordered(AT_ONCE_MAX);
        while let Some((name, ended)) = ended.next().await {
            if let Some(ended) = ended {
                summary.add(name, ended);
            }
        }
    }
}

/// One operation; `None` if it is not in the journal any more.
async fn one<T: Transport>(
    client: &Client<T>,
    journal: &Journal,
    name: &Name,
    (wish, watch): (TakeUp, Option<Arc<dyn Watch>>),
) -> Option<Result<Answer, CallError>> {
    let held = || CallError::Held { name: name.clone(), ends_in: journal.lease() };
    let PursuitTurn::Mine(turn) = client.0.flights.enter(name, None) else {
        return Some(Err(held()));
    };
    let found = match journal.find(name).await {
        Ok(found) => found?,
        Err(error) => return Some(Err(error.into())),
    };
    let missing = missing(client, &found.request);
    if !missing.is_empty() && found.state.answer().is_none() {
        let name = name.clone();
        return Some(Err(CallError::CredentialsMissing { name, headers: missing }));
    }
    let begun = match journal.take_up(name.clone(), wish).await {
        Ok(begun) => begun?,
        Err(error) => return Some(Err(error.into())),
    };
    Some(match begun {
        PursuitAdmission::Granted(granted) => {
            let headers = granted.request.headers().clone();
            let deadline = granted.left.max(TIME_MIN);
            let with = PursueContext { headers, deadline, log: AttemptLog::new(watch) };
            Box::pin(carry(client, *granted, with, turn)).await
        }
        PursuitAdmission::Ended(entry) => journal_answer::told(*entry),
        PursuitAdmission::Held { ends_in } => Err(CallError::Held { name: name.clone(), ends_in }),
        PursuitAdmission::Mismatch => Err(CallError::NameReused { name: name.clone() }),
    })
}

/// The headers that say who asks which neither the journal nor the client has.
fn missing<T>(client: &Client<T>, request: &JournalRequest) -> Vec<HeaderName> {
    let withheld = request.withheld().iter();
    withheld.filter(|name| !client.0.headers.contains_key(*name)).cloned().collect()
}

/// One operation of the journal, about to be asked for again.
///
/// ```
/// use hapax_client::Client;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let charge = axum::routing::post(|| async { "charged" });
/// # let app = axum::Router::new().route("/charges", charge);
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("client.db");
/// let client = Client::builder().journal(file).build_on(app)?;
/// let answer = client.take_up("charge-order-42").send().await?;
/// assert!(answer.is_none(), "the journal knows no operation of that name");
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is sent until `send`"]
pub struct Resumption<T = Reqwest> {
    client: Client<T>,
    name: String,
    deadline: Option<Duration>,
    watch: Option<Arc<dyn Watch>>,
}

impl<T: Transport> Resumption<T> {
    pub(crate) fn new(client: Client<T>, name: String) -> Self {
        Self { client, name, deadline: None, watch: None }
    }

    /// How long all attempts from now on may take, instead of what the client was built with.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Tells somebody of every attempt while it is made.
    pub fn watch(mut self, watch: Arc<dyn Watch>) -> Self {
        self.watch = Some(watch);
        self
    }

    /// Sends it with the key it was begun with; what has been answered is not sent.
    ///
    /// `None` if there is no operation of that name.
    pub async fn send(self) -> Result<Option<Answer>, CallError> {
        let journal = self.client.journal()?;
        let name = Name::parse(&self.name);
        let name = name.map_err(|invalid| CallError::Invalid(InvalidCall::Name(invalid)))?;
        let deadline = send::deadline(&self.client.0, self.deadline);
        let wish = TakeUp::Unanswered { deadline };
        Box::pin(one(&self.client, journal, &name, (wish, self.watch))).await.transpose()
    }
}

impl<T> fmt::Debug for Resumption<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resumption({})", self.name)
    }
}
