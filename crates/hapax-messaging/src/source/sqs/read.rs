//! A message of SQS as a consumer sees it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use hapax_core::Header;

use super::ShelvedMessage;
use crate::{
    consumer::Incoming,
    sqs::{EMPTY, ENCODING, HEADERS, MessageAttribute},
};

/// What the sink of SQS wrote is read back as it was before: payload, headers and all.
pub(super) fn incoming(received: ShelvedMessage, queue: &str) -> Incoming {
    let mut message = received.message;
    let number = |name: &str| message.attributes.get(name)?.parse().ok();
    let deliveries = number("ApproximateReceiveCount");
    let encoding = message.message_attributes.remove(ENCODING).and_then(|how| how.string_value);
    let payload = payload(message.body, encoding.as_deref());
    let mut headers: Vec<Header> = Vec::new();
    if let Some(own) = message.message_attributes.remove(HEADERS) {
        headers.extend(own_headers(&own.string_value.unwrap_or_default()));
    }
    let attributes = message.message_attributes.into_iter();
    headers.extend(attributes.map(|(name, value)| Header { name, value: bytes(value) }));
    let duplicate = "MessageDeduplicationId";
    if let Some(id) = message.attributes.remove(duplicate) {
        headers.push(Header { name: duplicate.to_owned(), value: id.into() });
    }
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    let mut incoming = Incoming {
        source: queue.to_owned(),
        broker_id: Some(message.message_id),
        key: None,
        payload,
        headers,
        deliveries,
        place: None,
    };
    incoming.key = incoming.header("ce-subject").map(str::to_owned).or(received.group);
    incoming
}

/// What somebody else wrote under the same name and cannot be read is left as it is.
fn payload(body: String, encoding: Option<&str>) -> Bytes {
    match encoding {
        Some(EMPTY) => Bytes::new(),
        Some("base64") => STANDARD.decode(&body).map_or_else(|_| body.into(), Bytes::from),
        Some(_) | None => body.into(),
    }
}

fn own_headers(json: &str) -> Vec<Header> {
    let headers: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).unwrap_or_default();
    let headers = headers.into_iter().filter_map(|(name, value)| {
        let value = value.as_str()?.to_owned().into();
        Some(Header { name, value })
    });
    headers.collect()
}

fn bytes(attribute: MessageAttribute) -> Bytes {
    let binary = attribute.binary_value.and_then(|binary| STANDARD.decode(binary).ok());
    match (binary, attribute.string_value) {
        (Some(binary), _) => binary.into(),
        (None, text) => text.unwrap_or_default().into(),
    }
}
