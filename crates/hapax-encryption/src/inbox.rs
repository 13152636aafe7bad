//! The inbox around an inbox.

use std::{error::Error, fmt, sync::Arc, time::Duration};

use bytes::{Buf, Bytes};
use hapax_core::{
    Header, Key, Scope, StoreError, Tenant, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        Inbox, KeptMessage, Letter, Message, MessageArrival, MessageEnd, MessageEntered, Partition,
        RegisteredConsumer, Taken, Waiting, decode_headers, encode_headers,
    },
    store::KeyStorage,
};

use crate::{
    binding::{Binding, KeptAs, MessagePlace},
    sealing::SealingKey,
    tenant_keys::{TenantKeys, Unopened, malformed, seal_for},
};

/// Any inbox, with what is kept of messages encrypted in it: those that are held for their turn, and dead
/// letters; of each its headers and its payload.
///
/// The handler's transaction is that of the inner inbox. The key a message would be kept with is fetched
/// before that transaction begins, so that nothing waits for it while a connection is taken.
pub struct EncryptedInbox<I, K> {
    pub(crate) inner: I,
    pub(crate) keys: TenantKeys<K>,
    tenants: Arc<TenantOf>,
}

type TenantOf = dyn Fn(&Scope, &Message) -> Option<Tenant> + Send + Sync;

impl<I, K: KeyStorage> EncryptedInbox<I, K> {
    /// Around this inbox. Messages of a consumer are encrypted for the tenant `consumer:NAME`.
    pub fn new(inner: I, keys: TenantKeys<K>) -> Self {
        Self { inner, keys, tenants: Arc::new(|_, _| None) }
    }

    /// The same, with messages encrypted for tenants that this tells by what they say; for `consumer:NAME`
    /// where it tells none.
    #[must_use]
    pub fn tenants(
        self,
        tenant: impl Fn(&Message) -> Option<Tenant> + Send + Sync + 'static,
    ) -> Self {
        Self { tenants: Arc::new(move |_, message| tenant(message)), ..self }
    }

    fn tenant_of(&self, consumer: &Scope, message: &Message) -> Result<Tenant, StoreError> {
        match (self.tenants)(consumer, message) {
            Some(tenant) => Ok(tenant),
            None => Tenant::parse(format!("consumer:{}", consumer.as_str()))
                .map_err(StoreError::unavailable),
        }
    }

    /// The message sealed with a key that was fetched before the transaction began.
    fn sealed(&self, kept: &KeptMessage, kind: KeptAs<'_>) -> Result<KeptMessage, StoreError> {
        if kept.message().unreadable_because().is_some() {
            // It is kept as it was found.
            let ciphertext = kept.message().payload.clone();
            return Ok(kept.clone().sealed(ciphertext));
        }
        let tenant = self.tenant_of(&kept.consumer().name, kept.message())?;
        let key = self.keys.at_hand(&tenant);
        let key = key.ok_or_else(|| StoreError::unavailable(NO_KEY_AT_HAND))?;
        seal(&tenant, &key, kept, kind)
    }

    async fn opened(&self, consumer: i32, message: &Message) -> Result<Message, StoreError> {
        let place = MessagePlace {
            id: message.id.as_str(),
            source: &message.source,
            key: message.key.as_deref(),
            kind: KeptAs::Held { version: message.version },
        };
        let binding = |tenant: &Tenant| Binding::message(tenant, consumer, &place);
        let opened = self.keys.open(&message.payload, binding).await.and_then(contents);
        match opened {
            Ok((headers, payload)) => Ok(Message { headers, payload, ..message.clone() }),
            Err(Unopened::Never(why)) => Ok(message.clone().unreadable(why)),
            Err(Unopened::NotNow(error)) => Err(error),
        }
    }
}

const NO_KEY_AT_HAND: &str = "the key that the message would be kept with is no longer in memory";

impl<I: Inbox, K: KeyStorage> Inbox for EncryptedInbox<I, K> {
    type Transaction = I::Transaction;

    async fn enlist(
        &self,
        name: &Scope,
        retention: Duration,
    ) -> Result<RegisteredConsumer, StoreError> {
        self.inner.enlist(name, retention).await
    }

    async fn enter(
        &self,
        arrival: &MessageArrival,
    ) -> Result<MessageEntered<Self::Transaction>, TransactionError> {
        if arrival.message.unreadable_because().is_none() {
            let tenant = self.tenant_of(&arrival.consumer.name, &arrival.message)?;
            self.keys.to_seal(&tenant).await?;
        }
        self.inner.enter(arrival).await
    }

    /// What is taken together is acted on or taken back, and never kept.
    async fn enter_all(
        &self,
        arrivals: &[MessageArrival],
    ) -> Result<Option<Self::Transaction>, TransactionError> {
        self.inner.enter_all(arrivals).await
    }

    async fn leave(
        &self,
        transaction: Self::Transaction,
        end: &MessageEnd,
    ) -> Result<(), TransactionError> {
        let sealed = match end {
            MessageEnd::Held(kept) => {
                let version = kept.message().version;
                self.sealed(kept, KeptAs::Held { version }).map(MessageEnd::Held)
            }
            MessageEnd::Dead(Letter { kept, reason }) => {
                let content = &kept.message().digest();
                let kept = self.sealed(kept, KeptAs::Letter { content });
                kept.map(|kept| MessageEnd::Dead(Letter { kept, reason: reason.clone() }))
            }
            MessageEnd::Done | MessageEnd::Passed | MessageEnd::Failed(_) => {
                return self.inner.leave(transaction, end).await;
            }
        };
        match sealed {
            Ok(end) => self.inner.leave(transaction, &end).await,
            Err(error) => {
                self.inner.take_back(transaction).await;
                Err(error.into())
            }
        }
    }

    async fn take_back(&self, transaction: Self::Transaction) {
        self.inner.take_back(transaction).await;
    }

    fn is_in_the_way(&self, error: &(dyn Error + 'static)) -> bool {
        self.inner.is_in_the_way(error)
    }

    async fn missed(&self, consumer: &RegisteredConsumer, id: &Key) -> Result<u32, StoreError> {
        self.inner.missed(consumer, id).await
    }

    async fn bury(&self, consumer: &RegisteredConsumer, letter: &Letter) -> Result<(), StoreError> {
        let Letter { kept, reason } = letter;
        let tenant = self.tenant_of(&consumer.name, kept.message())?;
        let key = self.keys.to_seal(&tenant).await?;
        let content = &kept.message().digest();
        let kept = seal(&tenant, &key, kept, KeptAs::Letter { content })?;
        self.inner.bury(consumer, &Letter { kept, reason: reason.clone() }).await
    }

    async fn take(
        &self,
        consumer: &RegisteredConsumer,
        partition: &Partition,
    ) -> Result<Taken, StoreError> {
        self.inner.take(consumer, partition).await
    }

    async fn waiting(
        &self,
        consumer: &RegisteredConsumer,
        waiting: &Waiting,
    ) -> Result<Vec<Arc<Message>>, StoreError> {
        let mut found = self.inner.waiting(consumer, waiting).await?;
        for message in &mut found {
            if message.is_sealed() {
                *message = Arc::new(self.opened(consumer.number, message).await?);
            }
        }
        Ok(found)
    }

    async fn forget(&self, limit: usize) -> Result<usize, StoreError> {
        self.inner.forget(limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.inner.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.inner.keep_clock(mark).await
    }
}

fn seal(
    tenant: &Tenant,
    key: &SealingKey,
    kept: &KeptMessage,
    kind: KeptAs<'_>,
) -> Result<KeptMessage, StoreError> {
    let message = kept.message();
    let (id, source, key_of) = (message.id.as_str(), &*message.source, message.key.as_deref());
    let place = MessagePlace { id, source, key: key_of, kind };
    let binding = Binding::message(tenant, kept.consumer().number, &place);
    let headers = encode_headers(&message.headers);
    let headers_len = u32::try_from(headers.len()).unwrap_or(u32::MAX).to_be_bytes();
    let ciphertext = seal_for(tenant, key, &binding, &[&headers_len, &headers, &message.payload]);
    Ok(kept.clone().sealed(ciphertext.map_err(StoreError::unavailable)?))
}

/// Headers and payload of what was opened.
pub(crate) fn contents(mut opened: Bytes) -> Result<(Vec<Header>, Bytes), Unopened> {
    let len = opened.try_get_u32().map_err(|_| malformed())?;
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    if len > opened.len() {
        return Err(malformed());
    }
    let headers = decode_headers(&opened.split_to(len)).ok_or_else(malformed)?;
    Ok((headers, opened))
}

impl<I: Clone, K> Clone for EncryptedInbox<I, K> {
    fn clone(&self) -> Self {
        let (inner, keys) = (self.inner.clone(), self.keys.clone());
        Self { inner, keys, tenants: Arc::clone(&self.tenants) }
    }
}

impl<I: fmt::Debug, K> fmt::Debug for EncryptedInbox<I, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedInbox").field("inner", &self.inner).finish_non_exhaustive()
    }
}
