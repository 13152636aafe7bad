//! Events that are encrypted before they are emitted, and opened by whoever sends them.

use std::{collections::BTreeMap, sync::Arc};

use bytes::{Buf, Bytes};
use hapax_core::{
    Event, Header, InvalidEvent, StoreError, Tenant,
    inbox::{decode_headers, encode_headers},
    outbox::{EventOpener, OpeningEvent, Stored, UnopenedEvent},
    store::KeyStorage,
};

use crate::{
    binding::Binding,
    sealing::{NotSealed, SealingKey},
    tenant_keys::{TenantKeys, Unopened, malformed, seal_for},
};

impl<K: KeyStorage> TenantKeys<K> {
    /// What encrypts events for this tenant: to be asked for before the transaction begins that they are
    /// emitted in.
    pub async fn sealer(&self, tenant: &Tenant) -> Result<EventSealer, StoreError> {
        Ok(EventSealer { tenant: tenant.clone(), key: self.to_seal(tenant).await? })
    }

    async fn open_event(&self, mut event: Stored) -> Result<Stored, Unopened> {
        let binding = |tenant: &Tenant| Binding::event(tenant, &event.topic, &event.key);
        let mut opened = self.open(&event.payload, binding).await?;
        let content_type = opened.try_get_u16().map_err(|_| malformed())?;
        let content_type = part(&mut opened, usize::from(content_type))?;
        let headers = opened.try_get_u32().map_err(|_| malformed())?;
        let headers = part(&mut opened, usize::try_from(headers).unwrap_or(usize::MAX))?;
        event.content_type = String::from_utf8(content_type.into()).map_err(|_| malformed())?;
        event.headers = by_name(decode_headers(&headers).ok_or_else(malformed)?);
        event.payload = opened;
        Ok(event)
    }
}

impl<K: KeyStorage> EventOpener for TenantKeys<K> {
    fn open(&self, event: Stored) -> OpeningEvent<'_> {
        Box::pin(async move {
            if !event.is_sealed() {
                return Ok(event);
            }
            self.open_event(event).await.map_err(|unopened| match unopened {
                Unopened::Never(why) => UnopenedEvent::Never(why),
                Unopened::NotNow(error) => UnopenedEvent::NotNow(error),
            })
        })
    }
}

/// Encrypts events for one tenant. It asks nobody, so it can be used while a transaction is open.
///
/// Topic and key stay clear. Use it for as long as a request or a message takes, and not for longer: keys
/// are rotated, and erased.
#[derive(Debug, Clone)]
pub struct EventSealer {
    tenant: Tenant,
    key: Arc<SealingKey>,
}

impl EventSealer {
    /// The event with payload, content type and headers encrypted. All of them, with some sixty bytes more
    /// and the name of the tenant, have to keep to the limit of a payload.
    pub fn seal(&self, event: &Event) -> Result<Event, EventNotSealed> {
        if event.is_sealed() {
            return Err(InvalidEvent::SealedType.into());
        }
        let binding = Binding::event(&self.tenant, event.topic(), event.key());
        let (content_type, headers) = (event.payload_type(), encode_headers(event.headers()));
        let content_type_len = u16::try_from(content_type.len()).map_err(|_| NotSealed)?;
        let headers_len = u32::try_from(headers.len()).map_err(|_| NotSealed)?;
        let parts: [&[u8]; 5] = [
            &content_type_len.to_be_bytes(),
            content_type.as_bytes(),
            &headers_len.to_be_bytes(),
            &headers,
            event.payload(),
        ];
        let ciphertext = seal_for(&self.tenant, &self.key, &binding, &parts)?;
        Ok(event.sealed(ciphertext)?)
    }
}

/// Why an event was not encrypted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventNotSealed {
    /// There is no randomness to encrypt it with.
    #[error(transparent)]
    NotSealed(#[from] NotSealed),
    /// It is encrypted already, or too large once it is.
    #[error("the event cannot be encrypted")]
    Invalid(#[from] InvalidEvent),
}

fn part(bytes: &mut Bytes, len: usize) -> Result<Bytes, Unopened> {
    if len > bytes.len() {
        return Err(malformed());
    }
    Ok(bytes.split_to(len))
}

/// As a log keeps them: the last one of a name counts.
fn by_name(headers: Vec<Header>) -> Vec<Header> {
    let by_name: BTreeMap<_, _> =
        headers.into_iter().map(|header| (header.name, header.value)).collect();
    by_name.into_iter().map(|(name, value)| Header { name, value }).collect()
}
