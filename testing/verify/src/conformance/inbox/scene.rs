//! A database, a consumer, and messages for it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Fence, Header, Key, Scope, TransactionError,
    inbox::{
        First, Identity, Inbox, KeptMessage, Message, MessageAnswer, MessageArrival, MessageEnd,
        MessageEntered, Partition, Place, Proof, RegisteredConsumer,
    },
    time::micros,
};

use super::InboxBackend;

pub(super) const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// A transaction of a backend's inbox.
pub(super) type Tx<B> = <<B as InboxBackend>::Inbox as Inbox>::Transaction;

/// A database with one consumer.
pub(super) struct InboxScene<B: InboxBackend> {
    pub(super) backend: B,
    pub(super) inbox: B::Inbox,
    pub(super) consumer: RegisteredConsumer,
}

impl<B: InboxBackend> InboxScene<B> {
    pub(super) async fn new() -> Self {
        let backend = B::create().await;
        let inbox = backend.open().await;
        let consumer = inbox.enlist(&scope("mailer"), WEEK).await.unwrap();
        Self { backend, inbox, consumer }
    }

    pub(super) fn arrival(&self, message: Message, proof: Proof) -> MessageArrival {
        let in_turn = message.version.is_some();
        MessageArrival {
            consumer: self.consumer.clone(),
            message: Arc::new(message),
            proof,
            in_turn,
        }
    }

    /// The message as it is kept.
    pub(super) fn kept(&self, message: Message) -> KeptMessage {
        KeptMessage::clear(self.consumer.clone(), Arc::new(message))
    }

    /// Has the message held for its turn.
    pub(super) async fn hold(&self, message: Message) {
        let held = MessageEnd::Held(self.kept(message.clone()));
        self.end(message, Proof::Record, held).await.unwrap();
    }

    pub(super) async fn enter(&self, message: Message) -> MessageEntered<Tx<B>> {
        self.inbox.enter(&self.arrival(message, Proof::Record)).await.unwrap()
    }

    /// The right to act on a message that nobody has acted on.
    pub(super) async fn first(&self, message: Message, proof: Proof) -> First<Tx<B>> {
        match self.inbox.enter(&self.arrival(message, proof)).await.unwrap() {
            MessageEntered::First(first) => first,
            MessageEntered::Answer(answer) => panic!("it should be the first, and is {answer:?}"),
        }
    }

    /// Why a message is not acted on.
    pub(super) async fn answer(&self, message: Message) -> MessageAnswer {
        self.answer_to(message, Proof::Record).await
    }

    pub(super) async fn answer_to(&self, message: Message, proof: Proof) -> MessageAnswer {
        match self.inbox.enter(&self.arrival(message, proof)).await.unwrap() {
            MessageEntered::First(_) => panic!("it was acted on already"),
            MessageEntered::Answer(answer) => answer,
        }
    }

    /// Acts on a message, with an effect of its name.
    pub(super) async fn deliver(&self, message: Message) {
        self.end(message, Proof::Record, MessageEnd::Done).await.unwrap();
    }

    pub(super) async fn end(
        &self,
        message: Message,
        proof: Proof,
        end: MessageEnd,
    ) -> Result<First<()>, TransactionError> {
        let name = message.id.as_str().to_owned();
        let First { mut transaction, last, held } = self.first(message, proof).await;
        if end == MessageEnd::Done {
            B::act(&mut transaction, &name).await;
        }
        self.inbox.leave(transaction, &end).await?;
        Ok(First { transaction: (), last, held })
    }

    pub(super) async fn effects(&self) -> Vec<String> {
        let mut effects = self.backend.effects().await;
        effects.sort();
        effects
    }

    pub(super) async fn pass(&self, span: Duration) {
        self.backend.step_clock(micros(span)).await;
    }
}

pub(super) fn scope(name: &str) -> Scope {
    Scope::parse(name).unwrap()
}

/// A message with this name, which says `hello`.
pub(super) fn message(id: &str) -> Message {
    Message {
        id: Key::parse(id).unwrap(),
        identity: Identity::Business,
        source: "orders".to_owned(),
        key: None,
        version: None,
        payload: Bytes::from_static(b"hello"),
        headers: vec![Header { name: "a".to_owned(), value: Bytes::from_static(b"\x00\xff") }],
        place: None,
    }
}

/// The same, which says something else.
pub(super) fn saying(id: &str, payload: &'static str) -> Message {
    Message { payload: Bytes::from_static(payload.as_bytes()), ..message(id) }
}

/// The message with this version of a key's story, named after both.
pub(super) fn version(key: &str, version: i64) -> Message {
    let key = Some(key.to_owned());
    let id = format!("{}-{version}", key.as_deref().unwrap_or_default());
    Message { key, version: Some(version), ..message(&id) }
}

/// The message at this offset of a partition.
pub(super) fn at(partition: i32, offset: i64) -> Message {
    let place = Place { partition: of(partition), offset };
    Message { place: Some(place), ..message(&format!("{partition}-{offset}")) }
}

pub(super) fn of(number: i32) -> Partition {
    Partition { source: "orders".to_owned(), number }
}

pub(super) fn under(fence: Fence) -> Proof {
    Proof::Place(fence)
}
