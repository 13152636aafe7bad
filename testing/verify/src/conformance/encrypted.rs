//! Any backend with its store encrypted: it must pass what it passes without.

use hapax_core::{Faults, OperationId, store::KeyStorage};
use hapax_encryption::{EncryptedStore, Encryption, LocalMasterKey};

use super::{Backend, Damage};

/// A backend whose store is encrypted.
#[derive(Debug)]
pub struct Encrypted<B>(B);

impl<B: Backend<Store: KeyStorage>> Backend for Encrypted<B> {
    type Store = EncryptedStore<B::Store>;

    const PLACES: &'static [&'static str] = B::PLACES;

    async fn create() -> Self {
        Self(B::create().await)
    }

    async fn open(&self, faults: Faults) -> Self::Store {
        let encryption = Encryption::new(LocalMasterKey::from_bytes(&[7; 32]));
        EncryptedStore::new(self.0.open(faults).await, encryption).await.unwrap()
    }

    async fn step_clock(&self, micros: i64) {
        self.0.step_clock(micros).await;
    }

    async fn damage(&self, id: OperationId, damage: Damage) {
        self.0.damage(id, damage).await;
    }
}
