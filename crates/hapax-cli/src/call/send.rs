//! A new call, or the same one again under its name.

use std::{sync::Arc, time::Duration};

use hapax::{
    Key,
    client::{
        Answer, CallError, Client,
        journal::{Journal, Name},
    },
    retry::Conclusion,
    tower::client::KeySource,
};

use super::{
    answer::Out,
    client,
    error::{CallExitCode, CallFailure},
    journal_file::JournalFile,
    line::{CallLine, Concluded},
    patience::{in_turn, released},
    reporter::Reporter,
    request::CallRequest,
};
use crate::{
    args::CallArgs,
    signals::{Signal, Signals},
};

/// How long all attempts together may take unless told otherwise.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

pub(super) async fn send(
    args: &CallArgs,
    teller: &Arc<Reporter>,
) -> Result<CallExitCode, CallFailure> {
    // The parser lets nothing else through.
    let (Some(method), Some(url)) = (&args.method, &args.url) else {
        return Ok(CallExitCode::Usage);
    };
    let wish = CallRequest::of(args, (method, url))?;
    let out = Out::of(args)?;
    // Whoever only reads has nothing to resume.
    if args.kept.no_journal
        || (method.is_safe() && args.kept.name.is_none() && args.kept.key.is_none())
    {
        in_memory(args, &wish, &out, teller).await
    } else {
        journalled(args, &wish, &out, teller).await
    }
}

async fn in_memory(
    args: &CallArgs,
    wish: &CallRequest,
    out: &Out<'_>,
    teller: &Arc<Reporter>,
) -> Result<CallExitCode, CallFailure> {
    let client = client(args)?.build()?;
    let drawn = || (!wish.method.is_idempotent()).then(|| KeySource::new().draw());
    let key = args.kept.key.as_ref().map(|key| key.as_str().to_owned()).or_else(drawn);
    let mut call = wish.dress(client.request(wish.method.clone(), wish.url.to_string()));
    call = call.deadline(args.pace.deadline.unwrap_or(DEADLINE)).watch(teller.watch(None));
    if let Some(key) = &key {
        call = call.key(key);
    }
    let mut signals = Signals::listen().map_err(CallFailure::Runtime)?;
    tokio::select! {
        biased;
        ended = call.send() => conclude(ended, None, out, teller),
        signal = signals.next() => {
            let signal_name = signal.as_str();
            let line =
                CallLine::Interrupted { name: None, key, signal: signal_name, resume: None };
            teller.say(&line);
            Ok(CallExitCode::Interrupted(signal))
        }
    }
}

async fn journalled(
    args: &CallArgs,
    wish: &CallRequest,
    out: &Out<'_>,
    teller: &Arc<Reporter>,
) -> Result<CallExitCode, CallFailure> {
    let place = JournalFile::of(args)?;
    let journal = place.open()?;
    let client = client(args)?.journal_opened(journal.clone()).build()?;
    let name = match (&args.kept.name, &args.kept.key) {
        (Some(name), _) => name.clone(),
        (None, Some(key)) => named(key.as_str())?,
        (None, None) => draw_name()?,
    };
    check_name(&journal, (&name, args.kept.key.as_ref()), wish).await?;
    let path = place.path().display().to_string();
    teller.say(&CallLine::Journalled { name: name.as_str(), journal: path });
    let deadline = args.pace.deadline.unwrap_or(DEADLINE);
    let mut signals = Signals::listen().map_err(CallFailure::Runtime)?;
    let ask = async |left: Duration| {
        ask(&client, (&name, args.kept.key.as_ref()), wish, (left, teller)).await
    };
    let ended = tokio::select! {
        biased;
        ended = in_turn((&name, deadline), teller, ask) => ended,
        signal = signals.next() => {
            return Ok(interrupted(&journal, (&name, &place), signal, teller).await);
        }
    };
    if let Err(CallError::NameReused { name }) = &ended {
        check_name(&journal, (name, args.kept.key.as_ref()), wish).await?;
    }
    let code = conclude(ended, Some((&name, &place)), out, teller)?;
    purge(&journal).await;
    Ok(code)
}

async fn ask(
    client: &Client,
    (name, key): (&Name, Option<&Key>),
    wish: &CallRequest,
    (left, teller): (Duration, &Arc<Reporter>),
) -> Result<Answer, CallError> {
    let call = client.operation(name.as_str()).request(wish.method.clone(), wish.url.to_string());
    let call = wish.dress(call).deadline(left).watch(teller.watch(Some(name)));
    match key {
        Some(key) => call.key(key.as_str()).send().await,
        None => call.send().await,
    }
}

/// Refuses a name that belongs to another request, and says in what they differ.
async fn check_name(
    journal: &Journal,
    (name, key): (&Name, Option<&Key>),
    wish: &CallRequest,
) -> Result<(), CallFailure> {
    let Some(entry) = journal.find(name).await? else { return Ok(()) };
    match wish.differs(key, &entry) {
        Some(differs) => Err(CallFailure::NameReused { name: name.clone(), differs }),
        None => Ok(()),
    }
}

/// Tells what an operation came to, and prints its answer.
pub(super) fn conclude(
    ended: Result<Answer, CallError>,
    named: Option<(&Name, &JournalFile)>,
    out: &Out<'_>,
    teller: &Reporter,
) -> Result<CallExitCode, CallFailure> {
    let conclusion = tell(&ended, named, teller);
    match (ended, conclusion) {
        (Ok(answer), Some(conclusion)) => out.write(&answer).map(|()| conclusion.into()),
        (Err(CallError::Refused(answer)), Some(conclusion)) => {
            out.write(&answer).map(|()| conclusion.into())
        }
        (_, Some(conclusion)) => Ok(conclusion.into()),
        (Err(error), None) => Err(error.into()),
        (Ok(_), None) => Ok(CallExitCode::Done),
    }
}

/// Tells what an operation came to, if it came to something.
pub(super) fn tell(
    ended: &Result<Answer, CallError>,
    named: Option<(&Name, &JournalFile)>,
    teller: &Reporter,
) -> Option<Conclusion> {
    let name = named.map(|(name, _)| name.as_str());
    let (conclusion, concluded) = match ended {
        Ok(answer) => (Conclusion::Done, Concluded::answered(name, Conclusion::Done, answer)),
        Err(CallError::Refused(answer)) => {
            (Conclusion::Refused, Concluded::answered(name, Conclusion::Refused, answer))
        }
        Err(error) => {
            let resume = named.map(|(name, place)| place.resume(name));
            (error.conclusion()?, Concluded::unanswered(name, error, resume)?)
        }
    };
    teller.say(&CallLine::Concluded(concluded));
    Some(conclusion)
}

/// Leaves the operation pending for the next one, and says how to go on.
pub(super) async fn interrupted(
    journal: &Journal,
    (name, place): (&Name, &JournalFile),
    signal: Signal,
    teller: &Reporter,
) -> CallExitCode {
    let key = released(journal, name).await;
    let resume = key.as_ref().map(|_| place.resume(name));
    let name = Some(name.as_str());
    teller.say(&CallLine::Interrupted { name, key, signal: signal.as_str(), resume });
    CallExitCode::Interrupted(signal)
}

/// Forgets what was over long ago. If that fails, the next call does it.
pub(super) async fn purge(journal: &Journal) {
    let _ = journal.purge().await;
}

fn named(text: &str) -> Result<Name, CallFailure> {
    Name::parse(text).map_err(|invalid| {
        CallFailure::Call(CallError::Invalid(hapax::client::InvalidCall::Name(invalid)))
    })
}

/// A name for somebody who gives none, easy to copy and taken by nobody.
fn draw_name() -> Result<Name, CallFailure> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut drawn = [0; 12];
    getrandom::fill(&mut drawn).map_err(CallFailure::Random)?;
    let letters = drawn.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    named(&format!("call-{}", letters.collect::<String>()))
}
