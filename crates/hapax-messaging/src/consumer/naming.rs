//! Which message this is: by the name its sender gave it, or else its broker's.

use std::{fmt, sync::Arc};

use hapax_core::{
    Key,
    inbox::{Digest, Identity, Message},
};
use serde_json::Value;

use super::source::Incoming;

/// Headers in which senders say which message it is: CloudEvents, as the bindings spell them,
/// JetStream's own, and AMQP's property.
const ID_HEADERS: [&str; 6] =
    ["ce-id", "ce_id", "cloudEvents:id", "cloudEvents_id", "nats-msg-id", "message_id"];
/// Headers in which senders say what a message is about.
const KEY_HEADERS: [&str; 4] =
    ["ce-subject", "ce_subject", "cloudEvents:subject", "cloudEvents_subject"];

type Read<T> = Arc<dyn Fn(&Incoming) -> Option<T> + Send + Sync>;

/// Where the name, the key and the version of a message are found.
///
/// By default the name is the CloudEvent's id (`ce-id`, `ce_id`, `cloudEvents:id`), `Nats-Msg-Id` or
/// AMQP's `message_id`, else what the broker calls it; the key is the broker's, else the CloudEvent's subject; and there is
/// no version.
///
/// ```
/// use hapax_messaging::consumer::Naming;
///
/// // The sender's own number is the name, and the version counts the changes of an order.
/// let naming = Naming::default()
///     .id_at("/order/id")
///     .version(|incoming| incoming.header("version")?.parse().ok());
/// # drop(naming);
/// ```
#[derive(Clone, Default)]
pub struct Naming {
    id: Option<Read<String>>,
    key: Option<Read<String>>,
    version: Option<Read<i64>>,
}

impl Naming {
    /// The same with names found by this function; where it finds none, the broker's is taken.
    #[must_use]
    pub fn id(self, read: impl Fn(&Incoming) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { id: Some(Arc::new(read)), ..self }
    }

    /// The same with names found in payloads of JSON, at this pointer (RFC 6901), `/order/id` for
    /// example: a text or a number. Where there is none, the broker's is taken.
    #[must_use]
    pub fn id_at(self, pointer: impl Into<String>) -> Self {
        let pointer = pointer.into();
        self.id(move |incoming| {
            let payload: Value = serde_json::from_slice(&incoming.payload).ok()?;
            match payload.pointer(&pointer)? {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
            }
        })
    }

    /// The same with keys found by this function.
    #[must_use]
    pub fn key(self, read: impl Fn(&Incoming) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { key: Some(Arc::new(read)), ..self }
    }

    /// The same with versions found by this function.
    #[must_use]
    pub fn version(self, read: impl Fn(&Incoming) -> Option<i64> + Send + Sync + 'static) -> Self {
        Self { version: Some(Arc::new(read)), ..self }
    }

    /// The message, and why it has no name, if it has none: it then goes by the digest of its
    /// payload, to be put aside.
    pub(super) fn name(&self, incoming: Incoming) -> (Message, Option<String>) {
        let business = match &self.id {
            Some(read) => read(&incoming),
            None => first_header(&incoming, &ID_HEADERS),
        };
        let (identity, id) = match (business, &incoming.broker_id) {
            (Some(id), _) => (Identity::Business, Ok(id)),
            (None, Some(id)) => (Identity::Broker, Ok(id.clone())),
            (None, None) => {
                (Identity::Broker, Err("neither sender nor broker named it".to_owned()))
            }
        };
        let id = id.and_then(|id| {
            Key::parse(&id).map_err(|error| format!("its name cannot be used: {error}"))
        });
        let key = match &self.key {
            Some(read) => read(&incoming),
            None => incoming.key.clone().or_else(|| first_header(&incoming, &KEY_HEADERS)),
        };
        let version = self.version.as_ref().and_then(|read| read(&incoming));
        let nameless = Digest::of(&incoming.payload);
        let Incoming { source, payload, headers, place, .. } = incoming;
        let named = |id| Message { id, identity, source, key, version, payload, headers, place };
        match id {
            Ok(id) => (named(id), None),
            // Hexadecimal digits are visible ASCII, and there are 32 of them.
            Err(why) => match Key::parse(nameless.to_string()) {
                Ok(id) => (named(id), Some(why)),
                Err(_) => unreachable!("a digest is a name"),
            },
        }
    }
}

impl fmt::Debug for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Naming").finish_non_exhaustive()
    }
}

fn first_header(incoming: &Incoming, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| incoming.header(name)).map(str::to_owned)
}
