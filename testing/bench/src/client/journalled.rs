//! Operations that are written down before they are sent, and when they are answered.

use std::{
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use bytes::Bytes;
use hapax::{
    Body, Key, Outcome,
    client::{
        Client,
        journal::{
            Begin, Journal, JournalCredentials, JournalOptions, JournalRequest, Name,
            OwnerWriteResult, PursuitAdmission, PursuitEnd,
        },
    },
};
use hapax_core::Faults;
use http::{HeaderMap, Method, Uri, header::CONTENT_TYPE};

use super::{
    by_hand::{self, ByHand, name},
    calls::{CallMaker, JSON, transport},
    error::CallBenchError,
    upstream::BenchUpstream,
};
use crate::{
    BenchError,
    arms::{Arm, Batches, EffectCounter, StoredCount},
    request,
};

/// One way to keep a journal, with calls or without.
pub(super) struct Journalled {
    keeper: Keeper,
    upstream: Option<BenchUpstream>,
    path: PathBuf,
    answer: Bytes,
    effects: EffectCounter,
}

/// Who writes what down.
pub(super) enum Keeper {
    ByHand(ByHand, CallMaker),
    Journal(Journal),
    Client(Client),
}

const DEADLINE: Duration = Duration::from_secs(60);
/// Where the address of an operation is that is not sent.
const NOWHERE: &str = "http://127.0.0.1/payments";

impl Keeper {
    pub(super) fn by_hand(path: &Path, sync: Duration) -> Result<Self, BenchError> {
        Ok(Self::ByHand(ByHand::open(path, sync)?, CallMaker::bare()?))
    }

    pub(super) fn journal(path: &Path, sync: Duration) -> Result<Self, CallBenchError> {
        Ok(Self::Journal(open(path, sync)?))
    }

    pub(super) fn client(path: &Path, sync: Duration) -> Result<Self, CallBenchError> {
        let builder = Client::builder().journal_opened(open(path, sync)?);
        Ok(Self::Client(builder.build_on(transport()?)?))
    }
}

fn open(path: &Path, sync: Duration) -> Result<Journal, CallBenchError> {
    let faults = if sync.is_zero() {
        Faults::default()
    } else {
        Faults::new(move |place| {
            if place == "journal.write.before_commit" {
                thread::sleep(sync);
            }
            Ok(())
        })
    };
    Ok(Journal::open(path, JournalOptions { faults, ..JournalOptions::default() })?)
}

impl Journalled {
    pub(super) fn new(keeper: Keeper, upstream: Option<BenchUpstream>, path: PathBuf) -> Self {
        let answer = request::answer().into();
        Self { keeper, upstream, path, answer, effects: EffectCounter::default() }
    }

    /// The effect, if it is one that is had elsewhere.
    async fn call(&self, caller: &CallMaker, number: u64) -> Result<(), CallBenchError> {
        let Some(upstream) = &self.upstream else { return Ok(()) };
        self.check(&caller.call(upstream.url(), number).await?)
    }

    fn check(&self, answer: &Bytes) -> Result<(), CallBenchError> {
        if *answer == self.answer { Ok(()) } else { Err(CallBenchError::NotTheAnswer) }
    }

    async fn begin_and_end(&self, journal: &Journal, number: u64) -> Result<(), BenchError> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, JSON)]);
        let url = NOWHERE.parse::<Uri>().map_err(CallBenchError::Address)?;
        let body = request::body(number).into();
        let request =
            JournalRequest::new(Method::POST, url, headers, body, JournalCredentials::Withhold);
        let request = request.map_err(CallBenchError::NotKept)?;
        let (name, key) = (Name::parse(name(number))?, Key::parse(request::key(number))?);
        let begin = Begin::new(name, key, request, DEADLINE);
        let begun = journal.begin(begin).await.map_err(CallBenchError::Journal)?;
        let PursuitAdmission::Granted(granted) = begun else {
            return Err(CallBenchError::Lost.into());
        };
        self.effects.happened();
        let answer = Outcome::new(200, Vec::new(), Body::Kept(self.answer.clone()))?;
        let kept = journal.settle(&granted.hold, 1, PursuitEnd::Done(answer)).await;
        match kept.map_err(CallBenchError::Journal)? {
            OwnerWriteResult::Done => Ok(()),
            OwnerWriteResult::Lost { .. } => Err(CallBenchError::Lost.into()),
        }
    }
}

impl Arm for Journalled {
    async fn request(&self, number: u64) -> Result<(), BenchError> {
        match &self.keeper {
            Keeper::ByHand(journal, caller) => {
                let url = self.upstream.as_ref().map_or(NOWHERE, BenchUpstream::url);
                journal.begin(number, url).await?;
                self.call(caller, number).await?;
                self.effects.happened();
                journal.end(number).await
            }
            Keeper::Journal(journal) => self.begin_and_end(journal, number).await,
            Keeper::Client(client) => {
                let url = self.upstream.as_ref().map_or(NOWHERE, BenchUpstream::url);
                let call = client.operation(name(number)).post(url).header(CONTENT_TYPE, JSON);
                let answer = call.body(request::body(number)).send().await;
                let answer = answer.map_err(|error| CallBenchError::Call(Box::new(error)))?;
                self.check(answer.body().map_err(|_| CallBenchError::NotTheAnswer)?)?;
                self.effects.happened();
                Ok(())
            }
        }
    }

    fn effects(&self) -> &EffectCounter {
        &self.effects
    }

    /// What both ends agree on counts.
    async fn stored(&self) -> Result<StoredCount, BenchError> {
        let written = by_hand::stored(&self.path)?;
        let Some(upstream) = &self.upstream else { return Ok(written) };
        let executed = upstream.executed().await?;
        Ok(StoredCount {
            completed: written.completed.min(executed.completed),
            others: written.others
                + executed.others
                + written.completed.abs_diff(executed.completed),
        })
    }

    fn batches(&self) -> Option<Batches> {
        let commits = match &self.keeper {
            Keeper::ByHand(journal, _) => journal.commits(),
            Keeper::Journal(journal) => journal.stats().commits,
            Keeper::Client(client) => client.journal().ok()?.stats().commits,
        };
        Some(Batches { writes: 2 * self.effects.count(), commits })
    }

    fn server(&self) -> Option<u32> {
        self.upstream.as_ref().map(BenchUpstream::pid)
    }
}
