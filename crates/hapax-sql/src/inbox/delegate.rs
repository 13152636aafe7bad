/// What an `Inbox` of hapax-core does outside of its transactions, in an `impl` of it.
///
/// The database has `async fn session(&self) -> Result<impl Session, StoreError>` and
/// `fn context(&self) -> InboxContext`.
#[macro_export]
macro_rules! inbox_tables {
    () => {
        async fn enlist(
            &self,
            name: &::hapax_core::Scope,
            retention: ::std::time::Duration,
        ) -> Result<::hapax_core::inbox::RegisteredConsumer, ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::enlist(&mut session, self.context(), name, retention).await
        }

        async fn missed(
            &self,
            consumer: &::hapax_core::inbox::RegisteredConsumer,
            id: &::hapax_core::Key,
        ) -> Result<u32, ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::missed(&mut session, self.context(), consumer, id).await
        }

        async fn bury(
            &self,
            consumer: &::hapax_core::inbox::RegisteredConsumer,
            letter: &::hapax_core::inbox::Letter,
        ) -> Result<(), ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::bury(&mut session, self.context(), consumer, letter).await
        }

        async fn take(
            &self,
            consumer: &::hapax_core::inbox::RegisteredConsumer,
            partition: &::hapax_core::inbox::Partition,
        ) -> Result<::hapax_core::inbox::Taken, ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::take(&mut session, self.context(), consumer, partition).await
        }

        async fn waiting(
            &self,
            consumer: &::hapax_core::inbox::RegisteredConsumer,
            waiting: &::hapax_core::inbox::Waiting,
        ) -> Result<
            ::std::vec::Vec<::std::sync::Arc<::hapax_core::inbox::Message>>,
            ::hapax_core::StoreError,
        > {
            let mut session = self.session().await?;
            $crate::inbox::tables::waiting(&mut session, self.context(), consumer, waiting).await
        }

        async fn forget(&self, limit: usize) -> Result<usize, ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::forget(&mut session, self.context(), limit).await
        }

        async fn clock(
            &self,
        ) -> Result<::hapax_core::clock::ClockReading, ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::clock(&mut session, self.context()).await
        }

        async fn keep_clock(
            &self,
            mark: ::hapax_core::clock::ClockMark,
        ) -> Result<(), ::hapax_core::StoreError> {
            let mut session = self.session().await?;
            $crate::inbox::tables::keep_clock(&mut session, self.context(), mark).await
        }
    };
}
