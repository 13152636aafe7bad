//! What people are shown of an encrypted inbox.

use hapax_core::{
    StoreError, Tenant,
    inbox::{
        ConsumerName, ConsumerSummary, Digest, HeldKey, InboxAdmin, LetterContent, LetterId,
        PartitionProgress, RetriedPage, StoredLetter,
    },
    store::KeyStorage,
};

use crate::{
    binding::{Binding, KeptAs, MessagePlace},
    inbox::{EncryptedInbox, contents},
};

/// As many bytes of a payload as a database can be asked for.
const ALL_BYTES: usize = i32::MAX as usize;

impl<I: InboxAdmin, K: KeyStorage> EncryptedInbox<I, K> {
    /// The letter in the clear; as it is where it cannot be opened.
    async fn opened_letter(
        &self,
        consumer: i32,
        sealed: LetterContent,
        most: usize,
    ) -> LetterContent {
        let StoredLetter { id, source, key, .. } = &sealed.letter;
        let kind = KeptAs::Letter { content: &id.content };
        let place = MessagePlace { id: &id.message_id, source, key: key.as_deref(), kind };
        let binding = |tenant: &Tenant| Binding::message(tenant, consumer, &place);
        let opened = self.keys.open(&sealed.payload, binding).await.and_then(contents);
        let Ok((headers, mut payload)) = opened else { return sealed };
        let mut letter = sealed.letter;
        letter.payload_bytes = u64::try_from(payload.len()).unwrap_or(u64::MAX);
        payload.truncate(most);
        LetterContent { letter, headers: Some(headers), payload }
    }
}

impl<I: InboxAdmin, K: KeyStorage> InboxAdmin for EncryptedInbox<I, K> {
    async fn consumers(
        &self,
        after: Option<ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerSummary>, StoreError> {
        self.inner.consumers(after, limit).await
    }

    async fn consumer(&self, name: ConsumerName) -> Result<Option<ConsumerSummary>, StoreError> {
        self.inner.consumer(name).await
    }

    async fn partitions(
        &self,
        consumer: i32,
        limit: usize,
    ) -> Result<Vec<PartitionProgress>, StoreError> {
        self.inner.partitions(consumer, limit).await
    }

    async fn retried(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<RetriedPage, StoreError> {
        self.inner.retried(consumer, after, limit).await
    }

    async fn held(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<HeldKey>, StoreError> {
        self.inner.held(consumer, after, limit).await
    }

    async fn letters(
        &self,
        consumer: i32,
        after: Option<(String, Digest)>,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, StoreError> {
        self.inner.letters(consumer, after, limit).await
    }

    async fn letter(
        &self,
        consumer: i32,
        message_id: String,
        content: Digest,
        payload_bytes_max: usize,
    ) -> Result<Option<LetterContent>, StoreError> {
        let found = self.inner.letter(consumer, message_id.clone(), content, payload_bytes_max);
        let found = found.await?;
        let Some(found) = found else { return Ok(None) };
        if !found.is_sealed() {
            return Ok(Some(found));
        }
        // A part of a ciphertext opens nothing.
        let whole = self.inner.letter(consumer, message_id, content, ALL_BYTES).await?;
        let Some(whole) = whole.filter(LetterContent::is_sealed) else { return Ok(Some(found)) };
        let opened = self.opened_letter(consumer, whole, payload_bytes_max).await;
        Ok(Some(if opened.is_sealed() { found } else { opened }))
    }

    async fn discard(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        self.inner.discard(consumer, letter).await
    }

    async fn forgive(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        self.inner.forgive(consumer, letter).await
    }
}
