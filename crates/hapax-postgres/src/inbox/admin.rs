//! What people are told about consumers, on the store's connection for people.

use hapax_core::{
    StoreError,
    inbox::{
        ConsumerName, ConsumerSummary, Digest, HeldKey, InboxAdmin, LetterContent, LetterId,
        PartitionProgress, RetriedPage, StoredLetter,
    },
};
use hapax_sql::{
    TransactionFault,
    inbox::{InboxAdminContext, InboxAdminStatements, admin},
};

use crate::{session::StoreSession, store::Store};

const CONTEXT: InboxAdminContext = InboxAdminContext { statements: &STATEMENTS, now: None };

const STATEMENTS: InboxAdminStatements = InboxAdminStatements {
    consumers: include_str!("../sql/inbox_admin_consumers.sql"),
    partitions: include_str!("../sql/inbox_admin_partitions.sql"),
    retried: include_str!("../sql/inbox_admin_retried.sql"),
    held: include_str!("../sql/inbox_admin_held.sql"),
    letters: include_str!("../sql/inbox_admin_letters.sql"),
    letter: include_str!("../sql/inbox_admin_letter.sql"),
    discard: include_str!("../sql/inbox_admin_discard.sql"),
    forgive: &[include_str!("../sql/inbox_admin_forgive.sql")],
};

/// The store as an inbox that people look after.
impl InboxAdmin for Store {
    async fn consumers(
        &self,
        after: Option<ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerSummary>, StoreError> {
        admin::consumers(&mut self.session().await?, CONTEXT, after.as_ref(), limit).await
    }

    async fn consumer(&self, name: ConsumerName) -> Result<Option<ConsumerSummary>, StoreError> {
        admin::consumer(&mut self.session().await?, CONTEXT, &name).await
    }

    async fn partitions(
        &self,
        consumer: i32,
        limit: usize,
    ) -> Result<Vec<PartitionProgress>, StoreError> {
        admin::partitions(&mut self.session().await?, CONTEXT, consumer, limit).await
    }

    async fn retried(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<RetriedPage, StoreError> {
        let session = &mut self.session().await?;
        admin::retried(session, CONTEXT, consumer, after.as_deref(), limit).await
    }

    async fn held(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<HeldKey>, StoreError> {
        let session = &mut self.session().await?;
        admin::held(session, CONTEXT, consumer, after.as_deref(), limit).await
    }

    async fn letters(
        &self,
        consumer: i32,
        after: Option<(String, Digest)>,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, StoreError> {
        let after = after.as_ref().map(|(id, content)| (&**id, content));
        admin::letters(&mut self.session().await?, CONTEXT, consumer, after, limit).await
    }

    async fn letter(
        &self,
        consumer: i32,
        message_id: String,
        content: Digest,
        payload_bytes_max: usize,
    ) -> Result<Option<LetterContent>, StoreError> {
        let (session, most) = (&mut self.session().await?, payload_bytes_max);
        admin::letter(session, CONTEXT, consumer, &message_id, &content, most).await
    }

    async fn discard(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        let gone = admin::discard(&mut self.session().await?, CONTEXT, consumer, &letter).await;
        gone.map_err(TransactionFault::of_statement)
    }

    async fn forgive(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        let gone = admin::forgive(&mut self.session().await?, CONTEXT, consumer, &letter).await;
        gone.map_err(TransactionFault::of_statement)
    }
}

impl Store {
    async fn session(&self) -> Result<StoreSession, StoreError> {
        Ok(StoreSession(self.shared.keeper.wire().await?))
    }
}
