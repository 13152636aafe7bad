//! How an event is written for SQS.

use std::{fmt::Write, str::from_utf8};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hapax_core::outbox::Stored;
use sha2::{Digest, Sha256};

use super::CloudEvents;
use crate::{
    sink::cloudevent::own_headers,
    sqs::{EMPTY, ENCODING, HEADERS, MessageAttribute, OutgoingMessage},
};

/// Longest name of a group, in bytes: what SQS takes.
const GROUP_BYTES_MAX: usize = 128;

const TEXT: &str = "String";

/// An event as SQS takes it.
pub(super) struct SqsEntry {
    id: String,
    group: String,
    body: String,
    attributes: Vec<(&'static str, String)>,
}

impl SqsEntry {
    /// Why it cannot be written, otherwise.
    pub(super) fn of(event: &Stored, events: &CloudEvents) -> Result<Self, String> {
        let mut attributes: Vec<_> = events
            .attributes(event)
            .into_iter()
            .map(|(attribute, value)| (attribute.hyphened(), value.into_owned()))
            .collect();
        attributes.push(("content-type", event.content_type.clone()));
        attributes.extend(headers(event).map(|headers| (HEADERS, headers)));
        let body = match from_utf8(&event.payload) {
            Ok("") => {
                attributes.push((ENCODING, EMPTY.to_owned()));
                EMPTY.to_owned()
            }
            Ok(text) if is_writable(text) => text.to_owned(),
            Ok(_) | Err(_) => {
                attributes.push((ENCODING, "base64".to_owned()));
                STANDARD.encode(&event.payload)
            }
        };
        if let Some((name, _)) = attributes.iter().find(|(_, value)| !is_writable(value)) {
            return Err(format!("its {name} holds characters that SQS does not take"));
        }
        Ok(Self { id: event.id.to_string(), group: group(&event.key), body, attributes })
    }

    /// What it counts for in the limits of SQS.
    pub(super) fn bytes(&self) -> usize {
        let attribute = |(name, value): &(&str, String)| name.len() + TEXT.len() + value.len();
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// As the entry of a request with this number.
    pub(super) fn entry(&self, at: usize) -> OutgoingMessage<'_> {
        let attribute = |(name, value): &(&'static str, String)| {
            let value = Some(value.clone());
            let (data_type, string_value) = (TEXT.to_owned(), value);
            (*name, MessageAttribute { data_type, string_value, binary_value: None })
        };
        OutgoingMessage {
            id: at.to_string(),
            message_body: &self.body,
            message_group_id: &self.group,
            message_deduplication_id: &self.id,
            message_attributes: self.attributes.iter().map(attribute).collect(),
        }
    }
}

/// The event's own headers, if it has some, as one JSON object: SQS takes ten attributes in all.
fn headers(event: &Stored) -> Option<String> {
    let headers: serde_json::Map<String, serde_json::Value> = own_headers(event, &["content-type"])
        .map(|(name, value)| (name.to_owned(), String::from_utf8_lossy(value).into()))
        .collect();
    (!headers.is_empty()).then(|| serde_json::Value::Object(headers).to_string())
}

/// The key where it can name a group, otherwise its digest. Should the one be spelled like the other,
/// two keys share a group, and their order is kept more strictly than need be.
fn group(key: &str) -> String {
    if key.len() <= GROUP_BYTES_MAX && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return key.to_owned();
    }
    Sha256::digest(key).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Whether SQS takes this text: what XML can hold.
fn is_writable(text: &str) -> bool {
    let writable = |c: char| match c {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        c => c >= ' ',
    };
    !text.is_empty() && text.chars().all(writable)
}
