//! What goes over the wire: AWS JSON 1.0.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct OfQueue<'a, T> {
    pub(super) queue_url: &'a str,
    #[serde(flatten)]
    pub(super) what: T,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Entries<E> {
    pub(crate) entries: Vec<E>,
}

/// A message to be sent.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct OutgoingMessage<'a> {
    pub(crate) id: String,
    pub(crate) message_body: &'a str,
    pub(crate) message_group_id: &'a str,
    pub(crate) message_deduplication_id: &'a str,
    pub(crate) message_attributes: HashMap<&'a str, MessageAttribute>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct MessageAttribute {
    pub(crate) data_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) string_value: Option<String>,
    /// In base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) binary_value: Option<String>,
}

/// What became of each entry of a batch.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct BatchAnswers {
    pub(crate) successful: Vec<Successful>,
    pub(crate) failed: Vec<FailedEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Successful {
    pub(crate) id: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct FailedEntry {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) sender_fault: bool,
    pub(crate) code: String,
    #[serde(default)]
    pub(crate) message: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct AttributeQuery<'a> {
    pub(super) attribute_names: &'a [&'a str],
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct Attributes {
    pub(super) attributes: HashMap<String, String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Receive {
    pub(crate) max_number_of_messages: usize,
    pub(crate) wait_time_seconds: u64,
    pub(crate) visibility_timeout: u64,
    pub(crate) message_system_attribute_names: [&'static str; 1],
    pub(crate) message_attribute_names: [&'static str; 1],
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct ReceivedMessages {
    pub(crate) messages: Vec<SqsMessage>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct SqsMessage {
    pub(crate) message_id: String,
    pub(crate) receipt_handle: String,
    #[serde(default)]
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) attributes: HashMap<String, String>,
    #[serde(default)]
    pub(crate) message_attributes: HashMap<String, MessageAttribute>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Handle<'a> {
    pub(crate) receipt_handle: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) visibility_timeout: Option<u64>,
}

/// The answer to what has none.
#[derive(Debug, Deserialize)]
pub(crate) struct Nothing {}

/// Why a request was refused.
#[derive(Debug, Deserialize)]
pub(super) struct SqsRefusal {
    #[serde(rename = "__type", default)]
    pub(super) kind: String,
    #[serde(alias = "Message", default)]
    pub(super) message: Option<String>,
}
