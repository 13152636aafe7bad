//! A message as a database keeps it.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    contract::RegisteredConsumer,
    headers::{encode_headers, encode_sealed_headers},
    message::Message,
};

/// A message that a database keeps: held for its turn, or as a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptMessage {
    consumer: RegisteredConsumer,
    message: Arc<Message>,
    ciphertext: Option<Bytes>,
}

impl KeptMessage {
    /// A message of this consumer, kept as it is.
    pub fn clear(consumer: RegisteredConsumer, message: Arc<Message>) -> Self {
        Self { consumer, message, ciphertext: None }
    }

    /// The same, kept as this ciphertext of its headers and its payload.
    #[must_use]
    pub fn sealed(self, ciphertext: Bytes) -> Self {
        Self { ciphertext: Some(ciphertext), ..self }
    }

    /// Whose message it is.
    pub fn consumer(&self) -> &RegisteredConsumer {
        &self.consumer
    }

    /// The message, in the clear.
    pub fn message(&self) -> &Arc<Message> {
        &self.message
    }

    /// What is kept of its headers.
    pub fn stored_headers(&self) -> Vec<u8> {
        match &self.ciphertext {
            Some(_) => encode_sealed_headers(),
            None => encode_headers(&self.message.headers),
        }
    }

    /// What is kept of its payload.
    pub fn stored_payload(&self) -> &Bytes {
        self.ciphertext.as_ref().unwrap_or(&self.message.payload)
    }
}
