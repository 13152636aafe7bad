//! Any inbox with what it keeps encrypted: it must pass what it passes without.

use hapax_core::{Event, inbox::Inbox, store::KeyStorage};
use hapax_encryption::{EncryptedInbox, Encryption, LocalMasterKey, TenantKeys};

use super::InboxBackend;

/// A backend whose inbox is encrypted. The store people look after it with keeps the keys.
#[derive(Debug)]
pub struct EncryptedMessages<B>(B);

impl<B: InboxBackend<Admin: KeyStorage>> EncryptedMessages<B> {
    async fn keys(&self) -> TenantKeys<B::Admin> {
        let encryption = Encryption::new(LocalMasterKey::from_bytes(&[7; 32]));
        TenantKeys::new(self.0.admin().await, encryption).await.unwrap()
    }
}

impl<B: InboxBackend<Admin: KeyStorage>> InboxBackend for EncryptedMessages<B> {
    /// The sealing with its tenant's name, and the headers, which are sealed too.
    const KEPT_BYTES_MORE: u64 = 3 + "consumer:mailer".len() as u64 + 52 + 4 + 12;

    type Inbox = EncryptedInbox<B::Inbox, B::Admin>;
    type Admin = EncryptedInbox<B::Admin, B::Admin>;

    async fn create() -> Self {
        Self(B::create().await)
    }

    async fn open(&self) -> Self::Inbox {
        EncryptedInbox::new(self.0.open().await, self.keys().await)
    }

    async fn admin(&self) -> Self::Admin {
        EncryptedInbox::new(self.0.admin().await, self.keys().await)
    }

    async fn act(transaction: &mut <B::Inbox as Inbox>::Transaction, effect: &str) {
        B::act(transaction, effect).await;
    }

    fn emit(transaction: &mut <B::Inbox as Inbox>::Transaction, event: Event) {
        B::emit(transaction, event);
    }

    async fn effects(&self) -> Vec<String> {
        self.0.effects().await
    }

    async fn events(&self) -> i64 {
        self.0.events().await
    }

    async fn dead(&self) -> Vec<(String, String)> {
        self.0.dead().await
    }

    async fn step_clock(&self, micros: i64) {
        self.0.step_clock(micros).await;
    }
}
