//! An inbox whose type is forgotten: whoever runs the gateway knows which one it is.

use std::{fmt, pin::Pin, sync::Arc};

use hapax_core::{
    StoreError,
    inbox::{
        ConsumerName, ConsumerSummary, Digest, HeldKey, InboxAdmin, LetterContent, LetterId,
        PartitionProgress, RetriedPage, StoredLetter,
    },
};

/// Any inbox. Clones share it.
#[derive(Clone)]
pub(in crate::admin) struct DynInbox(Arc<dyn ErasedInbox>);

impl DynInbox {
    pub(in crate::admin) fn new(inbox: impl InboxAdmin + 'static) -> Self {
        Self(Arc::new(inbox))
    }
}

impl fmt::Debug for DynInbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DynInbox(..)")
    }
}

impl std::ops::Deref for DynInbox {
    type Target = dyn ErasedInbox;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Declares [`InboxAdmin`] with boxed futures, and how any inbox is one.
macro_rules! erased {
    ($($method:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)+) => {
        /// [`InboxAdmin`] with boxed futures.
        pub(in crate::admin) trait ErasedInbox: Send + Sync {
            $(fn $method(&self, $($argument: $kind),*) -> Answer<'_, $answer>;)+
        }

        impl<I: InboxAdmin + 'static> ErasedInbox for I {
            $(fn $method(&self, $($argument: $kind),*) -> Answer<'_, $answer> {
                Box::pin(InboxAdmin::$method(self, $($argument),*))
            })+
        }
    };
}

erased! {
    consumers(after: Option<ConsumerName>, limit: usize) -> Vec<ConsumerSummary>;
    consumer(name: ConsumerName) -> Option<ConsumerSummary>;
    partitions(consumer: i32, limit: usize) -> Vec<PartitionProgress>;
    retried(consumer: i32, after: Option<String>, limit: usize) -> RetriedPage;
    held(consumer: i32, after: Option<String>, limit: usize) -> Vec<HeldKey>;
    letters(consumer: i32, after: Option<(String, Digest)>, limit: usize) -> Vec<StoredLetter>;
    letter(consumer: i32, message_id: String, content: Digest, payload_bytes_max: usize)
        -> Option<LetterContent>;
    discard(consumer: i32, letter: LetterId) -> bool;
    forgive(consumer: i32, letter: LetterId) -> bool;
}
