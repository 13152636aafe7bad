//! A named operation: in the journal before its first byte leaves, and until it is over.
//!
//! What is left if the process dies, by when it does:
//!
//! - before `begin` is on disk: nothing, and nothing was sent;
//! - after it, before, while or after anything is sent: a pending entry with the key, which a resume
//!   asks for again;
//! - after an answer, before it is on disk: the same, and the server answers as before;
//! - after that: the answer.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use tokio::time::{Instant, timeout_at};

use crate::{
    answer::Answer,
    call::{InvalidCall, RequestDraft},
    client::Client,
    error::CallError,
    journal::{Begin, JournalError, JournalRequest, Name, PursuitAdmission, PursuitGrant},
    journal_answer,
    lease::{AttemptLog, PursuitLease},
    pursue::{EarlierAttempts, PursuitRequest, pursue},
    pursuit_registry::{PursuitGuard, PursuitTurn},
    send::{deadline, draw},
    transport::Transport,
};

/// Pursues an operation, unless somebody does, or it is over.
pub(crate) async fn send<T: Transport>(
    client: &Client<T>,
    name: Name,
    asked: RequestDraft,
) -> Result<Answer, CallError> {
    let (shared, journal) = (&client.0, client.journal()?);
    let deadline = deadline(shared, asked.deadline);
    let key = match &asked.key {
        Some(given) => given.clone(),
        None => draw(shared)?,
    };
    let request = JournalRequest::new(
        asked.method.clone(),
        asked.url.clone(),
        asked.headers.clone(),
        asked.body.clone(),
        asked.credentials,
    );
    let request = request.map_err(|invalid| CallError::Invalid(InvalidCall::NotKept(invalid)))?;
    let digest = request.digest();
    let begin = Begin::new(name.clone(), key, request, deadline);
    let patience = Instant::now() + deadline;
    loop {
        match shared.flights.enter(&name, Some(digest)) {
            PursuitTurn::Mine(turn) => {
                let left = patience.saturating_duration_since(Instant::now());
                return lead(client, (name, begin), (asked, left), turn).await;
            }
            PursuitTurn::Anothers { digest: Some(other), .. } if other != digest => {
                return Err(CallError::NameReused { name });
            }
            PursuitTurn::Anothers { mut over, .. } => {
                // It ends with an error when whoever pursues it is gone, and never otherwise.
                if timeout_at(patience, over.changed()).await.is_err() {
                    return Err(CallError::Held { name, ends_in: Duration::ZERO });
                }
                if let Some(entry) = journal.find(&name).await?
                    && entry.request.digest() == digest
                    && entry.state.ended().is_some()
                {
                    return journal_answer::told(entry);
                }
            }
        }
    }
}

async fn lead<T: Transport>(
    client: &Client<T>,
    (name, begin): (Name, Begin),
    (asked, deadline): (RequestDraft, Duration),
    turn: PursuitGuard,
) -> Result<Answer, CallError> {
    let journal = client.journal()?;
    if let Some(given) = &asked.key
        && journal.find(&name).await?.is_some_and(|entry| entry.key != *given)
    {
        return Err(CallError::NameReused { name });
    }
    let begun = match journal.begin(begin.clone()).await {
        // What was granted is granted again.
        Err(JournalError::Unconfirmed(_)) => journal.begin(begin).await?,
        begun => begun?,
    };
    match begun {
        PursuitAdmission::Granted(granted) => {
            let mut headers = asked.headers;
            headers.extend(asked.inherited);
            let with = PursueContext { headers, deadline, log: AttemptLog::new(asked.watch) };
            carry(client, *granted, with, turn).await
        }
        PursuitAdmission::Ended(entry) => journal_answer::told(*entry),
        PursuitAdmission::Held { ends_in } => Err(CallError::Held { name, ends_in }),
        PursuitAdmission::Mismatch => Err(CallError::NameReused { name }),
    }
}

/// What an operation is pursued with, besides what the journal keeps.
pub(crate) struct PursueContext {
    pub(crate) headers: HeaderMap,
    pub(crate) deadline: Duration,
    pub(crate) log: Arc<AttemptLog>,
}

/// Pursues what was granted, says so in the journal meanwhile, and how it ended.
pub(crate) async fn carry<T: Transport>(
    client: &Client<T>,
    granted: PursuitGrant,
    with: PursueContext,
    turn: PursuitGuard,
) -> Result<Answer, CallError> {
    let journal = client.journal()?;
    let PursueContext { headers, deadline, log } = with;
    let before = before(&granted);
    let PursuitGrant { hold, request, .. } = granted;
    read_window_meanwhile(client, &request);
    let errand = PursuitRequest {
        name: Some(hold.name().clone()),
        key: Some(hold.key().clone()),
        method: request.method().clone(),
        url: request.url().clone(),
        headers,
        body: request.body().clone(),
        deadline,
        before,
        watch: Some(Arc::clone(&log) as _),
    };
    let mut lease = PursuitLease::new(journal, hold, log, (before, deadline, turn));
    tokio::select! {
        biased;
        ended = pursue(&client.0, errand) => lease.settle(ended).await,
        lost = lease.kept_up() => lost,
    }
}

pub(crate) fn before(granted: &PursuitGrant) -> EarlierAttempts {
    EarlierAttempts { attempts: granted.attempts, sent: granted.sent }
}

/// Asks the server for its window beside the operation, so that a deadline beyond it is told.
fn read_window_meanwhile<T: Transport>(client: &Client<T>, request: &JournalRequest) {
    let asks = client.0.windows.as_ref().is_some_and(|windows| !windows.is_asked(request.url()));
    if asks {
        let (client, method, url) =
            (client.clone(), request.method().clone(), request.url().clone());
        tokio::spawn(async move {
            if let Some(windows) = &client.0.windows {
                windows.of(&method, &url).await;
            }
        });
    }
}
