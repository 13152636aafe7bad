//! Keys are replaced while the store is in use, and wherever that is stopped nothing is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use hapax_core::{
    Reason, StoreError, Tenant, memory,
    store::{DataKeyId, KeyStorage, MasterKeyUse, StoredDataKey, TenantDataKeys, WrappedKey},
};
use hapax_encryption::{Encryption, EncryptionError, KEYS_SEEN_FOR, rewrap};
use tokio::time::advance;

use crate::world::{World, complete, heard, master, operation, told};

#[tokio::test(start_paused = true)]
async fn an_old_data_key_is_followed_by_a_new_one_and_still_opens() {
    let world = World::new();
    let encryption =
        Encryption { rotate_after: Some(Duration::from_secs(3600)), ..Encryption::new(master(1)) };
    let store = world.open(encryption.clone()).await;
    for hour in 0..3 {
        complete(&store, &operation("acme", &format!("k{hour}"))).await;
        world.pass(Duration::from_secs(3601));
        advance(KEYS_SEEN_FOR).await;
    }
    let keys = world.rows.data_keys(Tenant::parse("acme").unwrap()).await.unwrap().keys;
    assert_eq!(keys.iter().map(|key| key.id.version).collect::<Vec<_>>(), [1, 2, 3]);
    for hour in 0..3 {
        assert_eq!(told(&store, &operation("acme", &format!("k{hour}"))).await, heard());
    }
    let for_ever = world.open(Encryption { rotate_after: None, ..encryption }).await;
    complete(&for_ever, &operation("acme", "k3")).await;
    let keys = world.rows.data_keys(Tenant::parse("acme").unwrap()).await.unwrap().keys;
    assert_eq!(keys.len(), 3, "nobody asked for a new one");
}

#[tokio::test]
async fn a_process_that_did_not_see_a_new_key_made_still_reads_what_it_sealed() {
    let world = World::new();
    let first = world.open(Encryption::new(master(1))).await;
    complete(&first, &operation("acme", "k1")).await;
    let soon = Encryption { rotate_after: Some(Duration::ZERO), ..Encryption::new(master(1)) };
    let other = world.open(Encryption { rotate_after: Some(Duration::from_secs(1)), ..soon }).await;
    world.pass(Duration::from_secs(2));
    complete(&other, &operation("acme", "k2")).await;
    assert_eq!(told(&first, &operation("acme", "k2")).await, heard());
}

#[tokio::test]
async fn another_master_key_takes_over_while_both_are_in_use() {
    let world = World::new();
    let before = world.open(Encryption::new(master(1))).await;
    for tenant in ["acme", "umbrella", "initech"] {
        complete(&before, &operation(tenant, "k")).await;
    }
    let both = Encryption::new(master(2)).following(master(1));
    let meanwhile = world.open(both.clone()).await;
    let done = rewrap(&world.rows, &both).await.unwrap();
    assert_eq!((done.rewrapped, done.kept, done.erased), (3, 0, 0));
    for store in [&before, &meanwhile] {
        assert_eq!(told(store, &operation("acme", "k")).await, heard());
    }
    let alone = world.open(Encryption::new(master(2))).await;
    for tenant in ["acme", "umbrella", "initech"] {
        assert_eq!(told(&alone, &operation(tenant, "k")).await, heard());
    }
    let again = rewrap(&world.rows, &both).await.unwrap();
    assert_eq!((again.rewrapped, again.kept), (0, 3));
    let stranger = rewrap(&world.rows, &Encryption::new(master(3))).await.unwrap_err();
    assert!(matches!(stranger, EncryptionError::OtherMaster { .. }), "{stranger}");
}

#[tokio::test]
async fn a_key_that_a_late_process_made_under_the_old_master_key_is_noticed() {
    let world = World::new();
    let late = world.open(Encryption::new(master(1))).await;
    complete(&late, &operation("b", "k")).await;
    let both = Encryption::new(master(2)).following(master(1));
    assert_eq!(rewrap(&world.rows, &both).await.unwrap().rewrapped, 1);
    complete(&late, &operation("a", "k")).await;
    let alone = Encryption::new(master(2)).fits(&world.rows).await.unwrap_err();
    assert!(matches!(alone, EncryptionError::OtherMaster { keys: 1, .. }), "{alone}");
    assert_eq!(rewrap(&world.rows, &both).await.unwrap().rewrapped, 1);
    Encryption::new(master(2)).fits(&world.rows).await.unwrap();
}

#[tokio::test]
async fn wherever_a_rewrap_is_stopped_everything_is_read_and_the_next_one_ends_it() {
    let tenants = ["a", "b", "c", "d"];
    for writes in 0..=tenants.len() {
        let world = World::new();
        let before = world.open(Encryption::new(master(1))).await;
        for tenant in tenants {
            complete(&before, &operation(tenant, "k")).await;
        }
        let both = Encryption::new(master(2)).following(master(1));
        let stopping = Stopping::after(&world.rows, writes);
        let stopped = rewrap(&stopping, &both).await;
        assert_eq!(stopped.is_err(), writes < tenants.len(), "after {writes} writes");
        let meanwhile = world.open(both.clone()).await;
        for tenant in tenants {
            assert_eq!(told(&meanwhile, &operation(tenant, "k")).await, heard(), "{writes}");
        }
        let rest = rewrap(&world.rows, &both).await.unwrap();
        assert_eq!(rest.kept, u64::try_from(writes).unwrap());
        let alone = world.open(Encryption::new(master(2))).await;
        for tenant in tenants {
            assert_eq!(told(&alone, &operation(tenant, "k")).await, heard());
        }
    }
}

#[tokio::test]
async fn what_is_erased_while_it_is_rewrapped_stays_erased() {
    let world = World::new();
    let before = world.open(Encryption::new(master(1))).await;
    complete(&before, &operation("acme", "k")).await;
    let page = world.rows.list_data_keys(None, 10).await.unwrap();
    let hapax_core::store::DataKeyState::Kept(seen) = page[0].state.clone() else {
        panic!("it is there")
    };
    let reason = Reason::new("ada", "they left us").unwrap();
    world.rows.erase_data_keys(page[0].id.tenant.clone(), reason).await.unwrap();
    let id = page[0].id.clone();
    assert!(!world.rows.rewrap_data_key(id, seen.clone(), seen).await.unwrap());
    let both = Encryption::new(master(2)).following(master(1));
    assert_eq!(rewrap(&world.rows, &both).await.unwrap().erased, 1);
}

/// The keys of a store, until so many of them were rewrapped: then whoever writes is gone.
#[derive(Clone)]
struct Stopping {
    inner: memory::Store,
    left: Arc<AtomicUsize>,
}

impl Stopping {
    fn after(inner: &memory::Store, writes: usize) -> Self {
        Self { inner: inner.clone(), left: Arc::new(AtomicUsize::new(writes)) }
    }
}

impl KeyStorage for Stopping {
    async fn data_keys(&self, tenant: Tenant) -> Result<TenantDataKeys, StoreError> {
        self.inner.data_keys(tenant).await
    }

    async fn add_data_key(&self, key: DataKeyId, wrapped: WrappedKey) -> Result<bool, StoreError> {
        self.inner.add_data_key(key, wrapped).await
    }

    async fn rewrap_data_key(
        &self,
        key: DataKeyId,
        seen: WrappedKey,
        wrapped: WrappedKey,
    ) -> Result<bool, StoreError> {
        let left = self.left.load(SeqCst);
        if left == 0 {
            return Err(StoreError::unavailable("stopped here"));
        }
        self.left.store(left - 1, SeqCst);
        self.inner.rewrap_data_key(key, seen, wrapped).await
    }

    async fn erase_data_keys(&self, tenant: Tenant, reason: Reason) -> Result<usize, StoreError> {
        self.inner.erase_data_keys(tenant, reason).await
    }

    async fn list_data_keys(
        &self,
        after: Option<DataKeyId>,
        limit: usize,
    ) -> Result<Vec<StoredDataKey>, StoreError> {
        self.inner.list_data_keys(after, limit).await
    }

    async fn master_keys(&self) -> Result<Vec<MasterKeyUse>, StoreError> {
        self.inner.master_keys().await
    }
}
