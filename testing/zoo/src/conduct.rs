//! What a server does with a request, correctly. Each part can be replaced by a fault.

use std::{fmt::Debug, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use http::HeaderMap;

use crate::{
    enclosure::{Enclosure, HandlerRun},
    file::StateLine,
    keyring::{KeyFound, KnownKey},
    response::PlainResponse,
    submission::{self, Submission},
};

/// What a species does with what is posted. All that is provided is correct.
pub(crate) trait Conduct: Debug + Send + Sync {
    /// From the claim to the effect, unless a hook has set it.
    fn delay(&self) -> Duration {
        Duration::from_millis(20)
    }

    /// Whether a request that has been read goes on when its client leaves.
    fn is_detached(&self) -> bool {
        true
    }

    /// Whether a body that ended before its length is looked at.
    fn takes_cut_bodies(&self) -> bool {
        false
    }

    /// Whether requests that come at once on one HTTP/1.1 connection run beside each other.
    fn runs_pipelines_at_once(&self) -> bool {
        false
    }

    /// Everything, from a request that has been read to its answer.
    fn respond<'a>(
        &'a self,
        enclosure: &'a Arc<Enclosure>,
        submission: Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(respond(self, enclosure, submission))
    }

    /// Who asks.
    fn principal(&self, submission: &Submission) -> Result<String, PlainResponse> {
        submission::principal(&submission.headers)
    }

    /// The key that a request brings.
    fn key(&self, headers: &HeaderMap) -> Result<String, PlainResponse> {
        submission::key(headers)
    }

    /// Whether the body can be acted on.
    fn validate(&self, submission: &Submission) -> Result<(), PlainResponse> {
        submission.order().map(|_| ())
    }

    /// What to do with a request whose principal, key and body are known.
    fn answer<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, PlainResponse> {
        Box::pin(answer(self, enclosure, submission))
    }

    /// Under which name a key is kept: whose it is, and for what.
    fn name(&self, submission: &Submission) -> String {
        submission.name()
    }

    /// What makes two requests the same.
    fn fingerprint(&self, submission: &Submission) -> String {
        submission.text()
    }

    /// Takes the key, or says who has it: one step that nobody can come between.
    fn claim(&self, enclosure: &Enclosure, submission: &Submission) -> KeyFound {
        let key = KnownKey::claimed(self.fingerprint(submission), submission.connection);
        enclosure.keys.claim(&self.name(submission), key)
    }

    /// Has the effect, and writes in the same step which answer its key has.
    fn execute<'a>(
        &'a self,
        enclosure: &'a Enclosure,
        submission: &'a Submission,
    ) -> BoxFuture<'a, HandlerRun> {
        Box::pin(async move {
            enclosure.pause().await;
            let key = (self.name(submission), self.fingerprint(submission));
            enclosure.effect(submission, Some(key))
        })
    }

    /// Keeps what the retry will hear, or frees the key of what did not happen.
    fn settle(&self, enclosure: &Enclosure, submission: &Submission, run: &HandlerRun) {
        match &run.later {
            Some(response) => enclosure.keys.finish(&self.name(submission), response.clone()),
            None => enclosure.keys.forget(&self.name(submission)),
        }
    }

    /// What another one hears while the first is running.
    fn in_flight(&self) -> PlainResponse {
        PlainResponse::problem(409, "in flight").with("retry-after", "1")
    }

    /// What a retry hears afterwards.
    fn replay(&self, kept: PlainResponse) -> PlainResponse {
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }

    /// The body of a response was dropped before it had been taken to its end.
    fn left_untaken(&self, _enclosure: &Enclosure, _submission: &Submission) {}

    /// What a line of the file means to a process that has just been started.
    fn restore(&self, enclosure: &Enclosure, line: StateLine) {
        if let StateLine { key: Some(name), fingerprint: Some(fingerprint), response, .. } = line
            && let Some(response) = response
        {
            enclosure.keys.put(&name, KnownKey::finished(fingerprint, response));
        }
    }
}

/// From a request that has been read to its answer, checks first.
pub(crate) async fn respond<C: Conduct + ?Sized>(
    conduct: &C,
    enclosure: &Enclosure,
    mut submission: Submission,
) -> PlainResponse {
    match identify(conduct, &mut submission) {
        Ok(()) => conduct.answer(enclosure, &submission).await,
        Err(refusal) => refusal,
    }
}

/// Who asks and by which key, before anything is looked up.
pub(crate) fn identify<C: Conduct + ?Sized>(
    conduct: &C,
    submission: &mut Submission,
) -> Result<(), PlainResponse> {
    submission.principal = conduct.principal(submission)?;
    submission.key = conduct.key(&submission.headers)?;
    conduct.validate(submission)
}

/// Claim, execute, settle.
pub(crate) async fn answer<C: Conduct + ?Sized>(
    conduct: &C,
    enclosure: &Enclosure,
    submission: &Submission,
) -> PlainResponse {
    if let Some(told) = told(conduct, conduct.claim(enclosure, submission)) {
        return told;
    }
    let run = conduct.execute(enclosure, submission).await;
    conduct.settle(enclosure, submission, &run);
    run.now
}

/// What there is to tell by what was found under a key, or nothing where it is free.
pub(crate) fn told<C: Conduct + ?Sized>(conduct: &C, found: KeyFound) -> Option<PlainResponse> {
    match found {
        KeyFound::Free => None,
        KeyFound::Running => Some(conduct.in_flight()),
        KeyFound::Finished(kept) => Some(conduct.replay(kept)),
        KeyFound::Reused => Some(PlainResponse::problem(422, "key used for another request")),
    }
}
