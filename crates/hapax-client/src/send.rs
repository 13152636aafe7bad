//! What becomes of a call when it is sent.

use hapax_core::Key;
use hapax_tower::client::Keys;

use crate::{
    answer::Answer,
    call::Asked,
    client::{Client, Shared},
    error::CallError,
    journalled,
    pursue::{Before, Errand, pursue},
    transport::Transport,
};

pub(crate) async fn send<T: Transport>(
    client: Client<T>,
    mut asked: Asked,
) -> Result<Answer, CallError> {
    match asked.name.take() {
        Some(name) => journalled::send(&client, name, asked).await,
        None => plain(&client.0, asked).await,
    }
}

/// Without the journal: the key lives in memory, and is told if it is needed.
async fn plain<T: Transport>(shared: &Shared<T>, asked: Asked) -> Result<Answer, CallError> {
    let adds = shared.options.keys == Keys::Add && !asked.method.is_idempotent();
    let key = asked.key.or_else(|| if adds { draw(shared) } else { None });
    let mut headers = asked.headers;
    headers.extend(asked.inherited);
    let errand = Errand {
        name: None,
        key,
        method: asked.method,
        url: asked.url,
        headers,
        body: asked.body,
        deadline: asked.deadline.unwrap_or(shared.options.deadline),
        before: Before::default(),
        watch: asked.watch,
    };
    pursue(shared, errand).await
}

/// A new key. A UUID always is one.
pub(crate) fn draw<T>(shared: &Shared<T>) -> Option<Key> {
    Key::parse(shared.keys.draw()).ok()
}
