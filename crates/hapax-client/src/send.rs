//! What becomes of a call when it is sent.

use std::time::Duration;

use hapax_core::{Key, limits::RETENTION_MAX};
use hapax_tower::client::Keys;

use crate::{
    answer::Answer,
    call::{InvalidCall, RequestDraft},
    client::{Client, Shared},
    error::CallError,
    named_operation,
    pursue::{EarlierAttempts, PursuitRequest, pursue},
    transport::Transport,
};

pub(crate) async fn send<T: Transport>(
    client: Client<T>,
    mut asked: RequestDraft,
) -> Result<Answer, CallError> {
    match asked.name.take() {
        Some(name) => named_operation::send(&client, name, asked).await,
        None => plain(&client.0, asked).await,
    }
}

/// Without the journal: the key lives in memory, and is told if it is needed.
async fn plain<T: Transport>(shared: &Shared<T>, asked: RequestDraft) -> Result<Answer, CallError> {
    let adds = shared.options.keys == Keys::Add && !asked.method.is_idempotent();
    let key = match asked.key {
        None if adds => Some(draw(shared)?),
        key => key,
    };
    let mut headers = asked.headers;
    headers.extend(asked.inherited);
    let errand = PursuitRequest {
        name: None,
        key,
        method: asked.method,
        url: asked.url,
        headers,
        body: asked.body,
        deadline: deadline(shared, asked.deadline),
        before: EarlierAttempts::default(),
        watch: asked.watch,
    };
    pursue(shared, errand).await
}

/// How long an operation is pursued: a century is as good as this, and can be added to a clock.
pub(crate) fn deadline<T>(shared: &Shared<T>, asked: Option<Duration>) -> Duration {
    asked.unwrap_or(shared.options.deadline).min(RETENTION_MAX)
}

/// A new key.
pub(crate) fn draw<T>(shared: &Shared<T>) -> Result<Key, CallError> {
    let key = Key::parse(shared.keys.draw());
    key.map_err(|invalid| CallError::Invalid(InvalidCall::Key(invalid)))
}
