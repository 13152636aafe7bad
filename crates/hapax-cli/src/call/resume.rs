//! Finishing what an earlier run began.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use hapax::client::{
    Answer, CallError, Client,
    journal::{EntryFilter, EntryStateTag, Journal, Name},
};

use super::{
    answer::Out,
    client,
    error::{CallExitCode, CallFailure},
    journal_file::JournalFile,
    patience::in_turn,
    reporter::Reporter,
    request::Secrets,
    send::{DEADLINE, conclude, interrupted, purge, tell},
};
use crate::{args::CallArgs, signals::Signals};

/// How many operations are pursued at the same time.
const AT_ONCE_MAX: usize = 8;

/// Everything needed to finish operations.
struct Resume<'a> {
    args: &'a CallArgs,
    teller: &'a Arc<Reporter>,
    place: JournalFile,
    journal: Journal,
    client: Client,
}

/// Finishes one, and prints its answer.
pub(super) async fn one(
    args: &CallArgs,
    name: &Name,
    teller: &Arc<Reporter>,
) -> Result<CallExitCode, CallFailure> {
    let out = Out::of(args)?;
    let resume = Resume::open(args, teller)?;
    let mut signals = Signals::listen().map_err(CallFailure::Runtime)?;
    let ended = tokio::select! {
        biased;
        ended = resume.finish(name) => ended?,
        signal = signals.next() => {
            let named = (name, &resume.place);
            return Ok(interrupted(&resume.journal, named, signal, teller).await);
        }
    };
    let code = conclude(ended, Some((name, &resume.place)), &out, teller)?;
    purge(&resume.journal).await;
    Ok(code)
}

/// Finishes everything that is pending, and ends with the gravest code of all.
pub(super) async fn all(
    args: &CallArgs,
    teller: &Arc<Reporter>,
) -> Result<CallExitCode, CallFailure> {
    if !args.request.header_env.is_empty() {
        return Err(CallFailure::SecretsForAll);
    }
    let resume = Resume::open(args, teller)?;
    let mut signals = Signals::listen().map_err(CallFailure::Runtime)?;
    let (names, mut gravest) = resume.pending().await?;
    let finished = async {
        let mut codes = stream::iter(&names)
            .map(|name| resume.finish_and_tell(name))
            .buffer_unordered(AT_ONCE_MAX);
        while let Some(code) = codes.next().await {
            gravest = gravest.max(code);
        }
    };
    let signal = tokio::select! {
        biased;
        () = finished => None,
        signal = signals.next() => Some(signal),
    };
    if let Some(signal) = signal {
        let (left, _) = resume.pending().await?;
        for name in &left {
            interrupted(&resume.journal, (name, &resume.place), signal, teller).await;
        }
        return Ok(CallExitCode::Interrupted(signal));
    }
    purge(&resume.journal).await;
    Ok(gravest)
}

impl<'a> Resume<'a> {
    fn open(args: &'a CallArgs, teller: &'a Arc<Reporter>) -> Result<Self, CallFailure> {
        let secrets = Secrets::of(args)?;
        let place = JournalFile::of(args)?;
        let journal = place.find()?;
        let client = secrets.give(client(args)?.journal_opened(journal.clone())).build()?;
        Ok(Self { args, teller, place, journal, client })
    }

    /// The names of all that is pending, those that nobody has first; and how grave it is that some
    /// cannot be read.
    async fn pending(&self) -> Result<(Vec<Name>, CallExitCode), CallFailure> {
        let (mut free, mut held, mut code) = (Vec::new(), Vec::new(), CallExitCode::Done);
        let mut filter =
            EntryFilter { state: Some(EntryStateTag::Pending), ..EntryFilter::default() };
        loop {
            let page = self.journal.list(filter).await?;
            let Some(last) = page.last() else { break };
            filter.after = Some(last.position);
            for listed in page {
                match listed.entry {
                    Ok(entry) if entry.held.is_some() => held.push(entry.name),
                    Ok(entry) => free.push(entry.name),
                    Err(error) => code = code.max(self.teller.failed(&error.into())),
                }
            }
        }
        free.append(&mut held);
        Ok((free, code))
    }

    /// Pursues an operation for what was left of its deadline, unless another one was given.
    async fn finish(&self, name: &Name) -> Result<Result<Answer, CallError>, CallFailure> {
        let absent = || CallFailure::NotFound { name: name.clone() };
        let entry = self.journal.find(name).await?.ok_or_else(absent)?;
        let deadline = self.args.pace.deadline;
        let deadline = deadline.unwrap_or_else(|| entry.noted.left.max(DEADLINE));
        let ask = async |left: Duration| {
            let resumption = self.client.take_up(name.as_str()).deadline(left);
            resumption.watch(self.teller.watch(Some(name))).send().await
        };
        in_turn((name, deadline), self.teller, ask).await.transpose().ok_or_else(absent)
    }

    async fn finish_and_tell(&self, name: &Name) -> CallExitCode {
        let concluded = match self.finish(name).await {
            Ok(ended) => match tell(&ended, Some((name, &self.place)), self.teller) {
                Some(conclusion) => Ok(conclusion.into()),
                None => ended.map(|_| CallExitCode::Done).map_err(CallFailure::from),
            },
            Err(failure) => Err(failure),
        };
        concluded.unwrap_or_else(|failure| self.teller.failed_for(Some(name), &failure))
    }
}
