//! Databases that keep the keys of tenants, events and messages.

use std::fs;

use hapax_core::{
    Event, Reason, Tenant,
    inbox::{ConsumerName, Digest, InboxAdmin, LetterContent},
    outbox::OutboxAdmin,
    store::KeyStorage,
};
use hapax_encryption::{EncryptedInbox, Encryption, LocalMasterKey, TenantKeys};
use hapax_postgres::{OutboxOptions, transaction::deadpool};
use hapax_sqlite::Options;

use crate::consumer::base::{Base, Postgres, Sqlite, config};

/// A database with an outbox and the keys of tenants.
pub(crate) trait Vault: Base {
    type Store: KeyStorage + InboxAdmin + Clone;
    type Outbox: OutboxAdmin + Clone;

    /// Opens the store, over connections of its own.
    async fn store(&self) -> Self::Store;

    async fn outbox(&self) -> Self::Outbox;

    /// Publishes an event.
    async fn emit(&self, event: Event);

    /// All there is, as it is on disk or in rows.
    async fn stored(&self) -> Vec<u8>;

    /// Whether what is stored has these bytes somewhere.
    async fn holds(&self, text: &str) -> bool {
        let (stored, hex) = (self.stored().await, hex(text.as_bytes()));
        [text.as_bytes(), hex.as_bytes()]
            .iter()
            .any(|wanted| stored.windows(wanted.len()).any(|window| window == *wanted))
    }

    /// The keys, as a process has them that was just started with this master key.
    async fn keys(&self, master: u8) -> TenantKeys<Self::Store> {
        let encryption = Encryption::new(LocalMasterKey::from_bytes(&[master; 32]));
        TenantKeys::new(self.store().await, encryption).await.unwrap()
    }

    /// The inbox, encrypted.
    async fn vault(&self) -> EncryptedInbox<Self::Inbox, Self::Store> {
        EncryptedInbox::new(self.inbox(), self.keys(MASTER).await)
    }

    async fn erase(&self, tenant: &str) {
        let reason = Reason::new("ada", "they left us").unwrap();
        let erased = self.store().await.erase_data_keys(tenant_of(tenant), reason).await.unwrap();
        assert_eq!(erased, 1, "{tenant}");
    }

    /// The dead letter of this message with this content, as operators are shown it.
    async fn letter(inbox: &impl InboxAdmin, message_id: &str, content: &str) -> LetterContent {
        let (tenant, name) = ("messages".to_owned(), "mailer".to_owned());
        let consumer = inbox.consumer(ConsumerName { tenant, name }).await.unwrap().unwrap();
        let content = Digest::of(content.as_bytes());
        let letter = inbox.letter(consumer.number, message_id.to_owned(), content, 4).await;
        letter.unwrap().unwrap()
    }
}

pub(crate) const MASTER: u8 = 7;

pub(crate) fn tenant_of(name: &str) -> Tenant {
    Tenant::parse(name).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Vault for Sqlite {
    type Store = hapax_sqlite::Store;
    type Outbox = hapax_sqlite::Store;

    async fn store(&self) -> hapax_sqlite::Store {
        hapax_sqlite::Store::open(self.path(), Options::default()).unwrap()
    }

    async fn outbox(&self) -> hapax_sqlite::Store {
        self.store().await
    }

    async fn emit(&self, event: Event) {
        hapax_sqlite::emit(&self.client(), &event).unwrap();
    }

    async fn stored(&self) -> Vec<u8> {
        let path = self.path();
        let files = fs::read_dir(path.parent().unwrap()).unwrap();
        files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

impl Vault for Postgres {
    type Store = hapax_postgres::Store;
    type Outbox = hapax_postgres::Outbox;

    async fn store(&self) -> hapax_postgres::Store {
        let options = hapax_postgres::Options::default();
        hapax_postgres::Store::connect(&config(&self.address()), options).await.unwrap()
    }

    async fn outbox(&self) -> hapax_postgres::Outbox {
        let options = OutboxOptions::default();
        hapax_postgres::Outbox::connect(&config(&self.address()), options).await.unwrap()
    }

    async fn emit(&self, event: Event) {
        let database: deadpool::Database = self.inbox();
        database.emit(vec![event]).await.unwrap();
    }

    async fn stored(&self) -> Vec<u8> {
        let tables = "SELECT format('SELECT t::text FROM %s t', oid::regclass) FROM pg_class \
                      WHERE relnamespace = 'hapax'::regnamespace AND relkind = 'r'";
        let mut stored = Vec::new();
        for table in self.texts(tables).await {
            for row in self.texts(&table).await {
                stored.extend_from_slice(row.as_bytes());
            }
        }
        stored
    }
}
