//! Stores that keep the wrapped data keys of tenants keep them alike.

use bytes::Bytes;
use hapax_core::{
    Faults, Reason, Tenant,
    store::{DataKeyId, DataKeyState, KeyStorage, MasterKeyUse, StoredDataKey, WrappedKey},
};

use super::Backend;

async fn open<B: Backend<Store: KeyStorage>>() -> (B, B::Store) {
    let backend = B::create().await;
    let store = backend.open(Faults::default()).await;
    (backend, store)
}

fn id(tenant: &str, version: u32) -> DataKeyId {
    DataKeyId { tenant: Tenant::parse(tenant).unwrap(), version }
}

fn wrapped(master: &str, bytes: &'static [u8]) -> WrappedKey {
    WrappedKey { master: master.to_owned(), bytes: Bytes::from_static(bytes) }
}

fn reason() -> Reason {
    Reason::new("ada", "they left us").unwrap()
}

async fn of(store: &impl KeyStorage, tenant: &str) -> Vec<StoredDataKey> {
    store.data_keys(Tenant::parse(tenant).unwrap()).await.unwrap().keys
}

/// Whoever adds a version second adds nothing; another process reads the first.
pub async fn a_version_is_kept_once_and_comes_back_as_it_was<B: Backend<Store: KeyStorage>>() {
    let (backend, store) = open::<B>().await;
    let every_byte: &[u8] = b"\0\x01'\\\xff wrapped";
    assert!(of(&store, "acme").await.is_empty());
    assert!(store.add_data_key(id("acme", 1), wrapped("local:1", every_byte)).await.unwrap());
    assert!(!store.add_data_key(id("acme", 1), wrapped("local:2", b"other")).await.unwrap());
    assert!(store.add_data_key(id("acme", 2), wrapped("local:2", b"later")).await.unwrap());
    let other = backend.open(Faults::default()).await;
    let found = other.data_keys(Tenant::parse("acme").unwrap()).await.unwrap();
    let states: Vec<_> = found.keys.iter().map(|key| (key.id.version, &key.state)).collect();
    assert_eq!(
        states,
        [
            (1, &DataKeyState::Kept(wrapped("local:1", every_byte))),
            (2, &DataKeyState::Kept(wrapped("local:2", b"later"))),
        ]
    );
    assert!(found.keys.iter().all(|key| key.created_at <= found.now));
}

/// Names that are nearly the same are others.
pub async fn keys_belong_to_their_tenant<B: Backend<Store: KeyStorage>>() {
    let (_backend, store) = open::<B>().await;
    for tenant in ["acme", "acm", "acme2", "ACME"] {
        assert!(store.add_data_key(id(tenant, 1), wrapped("m", b"key")).await.unwrap());
    }
    assert_eq!(of(&store, "acme").await.len(), 1);
    assert_eq!(store.erase_data_keys(id("acme", 1).tenant, reason()).await.unwrap(), 1);
    for tenant in ["acm", "acme2", "ACME"] {
        let found = of(&store, tenant).await;
        assert_eq!(found[0].state, DataKeyState::Kept(wrapped("m", b"key")), "{tenant}");
    }
    let used = vec![MasterKeyUse { master: "m".to_owned(), keys: 3 }];
    assert_eq!(store.master_keys().await.unwrap(), used);
}

/// A rewrap replaces what its writer saw, and nothing else.
pub async fn a_key_is_rewrapped_only_as_it_was_seen<B: Backend<Store: KeyStorage>>() {
    let (_backend, store) = open::<B>().await;
    let (old, new) = (wrapped("old", b"key under old"), wrapped("new", b"key under new"));
    assert!(!store.rewrap_data_key(id("acme", 1), old.clone(), new.clone()).await.unwrap());
    store.add_data_key(id("acme", 1), old.clone()).await.unwrap();
    let before = of(&store, "acme").await.remove(0);
    let misread = wrapped("old", b"key under ol");
    assert!(!store.rewrap_data_key(id("acme", 1), misread, new.clone()).await.unwrap());
    assert!(store.rewrap_data_key(id("acme", 1), old.clone(), new.clone()).await.unwrap());
    assert!(!store.rewrap_data_key(id("acme", 1), old.clone(), new.clone()).await.unwrap());
    let after = of(&store, "acme").await.remove(0);
    assert_eq!(after.state, DataKeyState::Kept(new.clone()));
    assert_eq!(after.created_at, before.created_at, "it is the same key");
    store.erase_data_keys(id("acme", 1).tenant, reason()).await.unwrap();
    assert!(!store.rewrap_data_key(id("acme", 1), new, old).await.unwrap(), "it is gone");
}

/// What is left of an erased key is who erased it, when and why.
pub async fn an_erased_key_is_gone_and_its_version_is_not_given_again<
    B: Backend<Store: KeyStorage>,
>() {
    let (_backend, store) = open::<B>().await;
    for version in [1, 2] {
        store.add_data_key(id("acme", version), wrapped("m", b"key")).await.unwrap();
    }
    let tenant = id("acme", 1).tenant;
    assert_eq!(store.erase_data_keys(tenant.clone(), reason()).await.unwrap(), 2);
    assert!(!store.add_data_key(id("acme", 2), wrapped("m", b"again")).await.unwrap());
    assert!(store.add_data_key(id("acme", 3), wrapped("m", b"new")).await.unwrap());
    let found = of(&store, "acme").await;
    for erased in &found[..2] {
        let DataKeyState::Erased { reason: told, at } = &erased.state else {
            panic!("{erased:?} is still there")
        };
        assert_eq!((told.who(), told.why()), ("ada", "they left us"));
        assert!(erased.created_at <= *at);
    }
    assert_eq!(found[2].state, DataKeyState::Kept(wrapped("m", b"new")));
    let again = Reason::new("bob", "once more").unwrap();
    assert_eq!(store.erase_data_keys(tenant, again).await.unwrap(), 1, "the others are gone");
    assert!(store.master_keys().await.unwrap().is_empty());
}

/// A tenant without keys gets none by being erased.
pub async fn erasing_what_is_not_there_leaves_nothing<B: Backend<Store: KeyStorage>>() {
    let (_backend, store) = open::<B>().await;
    assert_eq!(store.erase_data_keys(id("acme", 1).tenant, reason()).await.unwrap(), 0);
    assert!(store.list_data_keys(None, 10).await.unwrap().is_empty());
}

/// Tenants come in the order of their bytes, then versions.
pub async fn pages_hold_every_key_once_in_order<B: Backend<Store: KeyStorage>>() {
    let (_backend, store) = open::<B>().await;
    let mut expected = Vec::new();
    for tenant in ["a", "B", "b b", "b", "zz"] {
        for version in [1, 2, 10] {
            store.add_data_key(id(tenant, version), wrapped("m", b"key")).await.unwrap();
            expected.push(id(tenant, version));
        }
    }
    expected.sort();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = store.list_data_keys(after, 4).await.unwrap();
        assert!(page.len() <= 4);
        let Some(last) = page.last() else { break };
        after = Some(last.id.clone());
        seen.extend(page.into_iter().map(|key| key.id));
    }
    assert_eq!(seen, expected);
}

/// Two processes that make a key at once agree on one.
pub async fn of_many_who_add_a_version_one_does<B: Backend<Store: KeyStorage>>() {
    let (backend, store) = open::<B>().await;
    let other = backend.open(Faults::default()).await;
    let add = |store, bytes| KeyStorage::add_data_key(store, id("acme", 1), wrapped("m", bytes));
    let (one, two, three, four) =
        tokio::join!(add(&store, b"1"), add(&other, b"2"), add(&store, b"3"), add(&other, b"4"),);
    let won = [one, two, three, four].map(Result::unwrap);
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    assert_eq!(of(&store, "acme").await.len(), 1);
}

/// Makes every case about data keys a test of this [`Backend`].
#[macro_export]
macro_rules! data_key_conformance {
    ($backend:ty) => {
        mod data_key_conformance {
            use super::*;

            $crate::data_key_conformance_cases! { $backend;
                a_version_is_kept_once_and_comes_back_as_it_was
                keys_belong_to_their_tenant
                a_key_is_rewrapped_only_as_it_was_seen
                an_erased_key_is_gone_and_its_version_is_not_given_again
                erasing_what_is_not_there_leaves_nothing
                pages_hold_every_key_once_in_order
                of_many_who_add_a_version_one_does
            }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! data_key_conformance_cases {
    ($backend:ty; $($case:ident)*) => {
        $(#[test]
        fn $case() {
            $crate::conformance::run($crate::conformance::data_keys::$case::<$backend>());
        })*
    };
}
