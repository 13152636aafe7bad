//! What people are told about consumers, through the store of the file.
//!
//! All consumers of a file are of one tenant.

use hapax_core::{
    StoreError, Timestamp,
    inbox::{
        ConsumerName, ConsumerSummary, Digest, HeldKey, InboxAdmin, LetterContent, LetterId,
        PartitionProgress, RetriedPage, StoredLetter,
    },
};
use hapax_sql::inbox::{InboxAdminContext, admin};
use rusqlite::Connection;

use super::admin_statements::STATEMENTS;
use crate::{
    log::{LogSession, ready},
    session::LentConnection,
    store::Store,
};

/// The store as an inbox that people look after.
impl InboxAdmin for Store {
    async fn consumers(
        &self,
        after: Option<ConsumerName>,
        limit: usize,
    ) -> Result<Vec<ConsumerSummary>, StoreError> {
        self.tell(move |mut session, context| {
            ready(admin::consumers(&mut session, context, after.as_ref(), limit))
        })
        .await
    }

    async fn consumer(&self, name: ConsumerName) -> Result<Option<ConsumerSummary>, StoreError> {
        self.tell(move |mut session, context| ready(admin::consumer(&mut session, context, &name)))
            .await
    }

    async fn partitions(
        &self,
        consumer: i32,
        limit: usize,
    ) -> Result<Vec<PartitionProgress>, StoreError> {
        self.tell(move |mut session, context| {
            ready(admin::partitions(&mut session, context, consumer, limit))
        })
        .await
    }

    async fn retried(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<RetriedPage, StoreError> {
        self.tell(move |mut session, context| {
            ready(admin::retried(&mut session, context, consumer, after.as_deref(), limit))
        })
        .await
    }

    async fn held(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<HeldKey>, StoreError> {
        self.tell(move |mut session, context| {
            ready(admin::held(&mut session, context, consumer, after.as_deref(), limit))
        })
        .await
    }

    async fn letters(
        &self,
        consumer: i32,
        after: Option<(String, Digest)>,
        limit: usize,
    ) -> Result<Vec<StoredLetter>, StoreError> {
        self.tell(move |mut session, context| {
            let after = after.as_ref().map(|(id, content)| (&**id, content));
            ready(admin::letters(&mut session, context, consumer, after, limit))
        })
        .await
    }

    async fn letter(
        &self,
        consumer: i32,
        message_id: String,
        content: Digest,
        payload_bytes_max: usize,
    ) -> Result<Option<LetterContent>, StoreError> {
        self.tell(move |mut session, context| {
            let session = &mut session;
            ready(admin::letter(
                session,
                context,
                consumer,
                &message_id,
                &content,
                payload_bytes_max,
            ))
        })
        .await
    }

    async fn discard(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        self.change(move |connection, now| {
            let session = &mut LentConnection(connection);
            let gone = ready(admin::discard(session, context(now), consumer, &letter));
            gone.map_err(<&Connection as LogSession>::refuse)
        })
        .await
    }

    async fn forgive(&self, consumer: i32, letter: LetterId) -> Result<bool, StoreError> {
        self.change(move |connection, now| {
            let session = &mut LentConnection(connection);
            let gone = ready(admin::forgive(session, context(now), consumer, &letter));
            gone.map_err(<&Connection as LogSession>::refuse)
        })
        .await
    }
}

impl Store {
    /// Reads in one snapshot.
    async fn tell<T: Send + 'static>(
        &self,
        read: impl FnOnce(LentConnection<'_>, InboxAdminContext) -> Result<T, StoreError>
        + Send
        + 'static,
    ) -> Result<T, StoreError> {
        let read =
            move |connection: &Connection, now| Ok(read(LentConnection(connection), context(now)));
        self.look_up(read).await?
    }
}

fn context(now: Timestamp) -> InboxAdminContext {
    InboxAdminContext { statements: &STATEMENTS, now: Some(now) }
}
