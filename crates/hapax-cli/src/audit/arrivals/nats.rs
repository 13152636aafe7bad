use async_nats::{
    HeaderMap,
    jetstream::{self, consumer::pull::OrderedConfig},
};
use futures_util::StreamExt;
use hapax_messaging::audit::Audit;
use percent_encoding::percent_decode_str;

use super::arrive;
use crate::audit::error::AuditError;

/// Everything in the stream, from its first message to what is its last one now.
pub(super) async fn read(audit: &mut Audit, url: &str, name: &str) -> Result<(), AuditError> {
    let servers: Vec<_> = url.split(',').map(str::trim).collect();
    let client = async_nats::connect(servers).await.map_err(AuditError::at)?;
    let stream = jetstream::new(client).get_stream(name).await.map_err(AuditError::at)?;
    let (count, last) = {
        let state = &stream.cached_info().state;
        (state.messages, state.last_sequence)
    };
    if count == 0 {
        return Ok(());
    }
    let consumer = stream.create_consumer(OrderedConfig::default()).await;
    let mut messages =
        consumer.map_err(AuditError::at)?.messages().await.map_err(AuditError::at)?;
    while let Some(message) = messages.next().await {
        let message = message.map_err(AuditError::at)?;
        let headers = message.headers.clone().unwrap_or_default();
        let id = decoded(&headers, "ce-id");
        arrive(audit, id.as_deref(), decoded(&headers, "ce-type"), decoded(&headers, "ce-subject"));
        let at = message.info().map_err(AuditError::at)?.stream_sequence;
        if at >= last {
            return Ok(());
        }
    }
    Err(AuditError::at("the stream ended before its last message"))
}

/// A CloudEvent's attribute, as it was before it became a header.
fn decoded(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name)?.as_str();
    Some(percent_decode_str(value).decode_utf8().ok()?.into_owned())
}
