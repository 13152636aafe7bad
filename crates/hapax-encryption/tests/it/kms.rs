//! A master key that a key service keeps, on a server that speaks as Amazon's does.

use hapax_core::{
    Store, StoreError, Tenant,
    store::{DataKeyId, Write as StoreWrite},
};
use hapax_encryption::{
    DataKeyBytes, Encryption, KmsCredentials, KmsMasterKey, KmsOptions, MasterKey, MasterKeyError,
    rewrap,
};
use hapax_services::{broker::Mode, kms};

use crate::world::{
    World, begin, claim, complete, finish, heard, keeping, master, operation, told,
};

fn key(arn: &str, url: &str) -> KmsMasterKey {
    let (access_key_id, secret_access_key) = ("somebody".to_owned(), "secret".to_owned());
    let credentials = Some(KmsCredentials { access_key_id, secret_access_key });
    let options = KmsOptions { endpoint: Some(url.to_owned()), region: None, credentials };
    KmsMasterKey::new(arn, options).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn data_keys_are_wrapped_by_a_key_service_and_nothing_new_begins_while_it_is_away() {
    let mut server = tokio::task::spawn_blocking(kms::start).await.unwrap().unwrap();
    let (arn, other) = (kms::create_key(&server).unwrap(), kms::create_key(&server).unwrap());
    let world = World::new();
    let encryption = Encryption::new(key(&arn, server.url()));
    let store = world.open(encryption.clone()).await;
    complete(&store, &operation("acme", "k")).await;
    let again = world.open(encryption.clone()).await;
    assert_eq!(told(&again, &operation("acme", "k")).await, heard());

    let acme = DataKeyId { tenant: Tenant::parse("acme").unwrap(), version: 9 };
    let umbrella = DataKeyId { tenant: Tenant::parse("umbrella").unwrap(), version: 9 };
    let service = key(&arn, server.url());
    let data_key = DataKeyBytes::from([5; 32]);
    let wrapped = service.wrap(&acme, &data_key).await.unwrap();
    assert_eq!(*service.unwrap(&acme, &wrapped).await.unwrap(), *data_key);
    let refused = service.unwrap(&umbrella, &wrapped).await.unwrap_err();
    assert!(matches!(refused, MasterKeyError::Refused { .. }), "of another tenant: {refused:?}");
    // Amazon says that it is the wrong key, others that it may not be used.
    assert!(key(&other, server.url()).unwrap(&acme, &wrapped).await.is_err(), "by another key");

    let attempt = begin(&store, &operation("acme", "begun"), keeping()).await;
    tokio::task::block_in_place(|| server.stop(Mode::Kill)).unwrap();
    let stranger = operation("umbrella", "stranger");
    let write = StoreWrite::Claim(claim(&store, &stranger, keeping()));
    let refused = store.commit(vec![write]).await.remove(0).unwrap_err();
    assert!(matches!(refused, StoreError::Unavailable(_)), "{refused:?}");
    let loaded = world.rows.load(vec![stranger.id()]).await.remove(0).unwrap();
    assert!(loaded.record.is_none(), "nothing was written");
    finish(&store, &attempt).await.unwrap();
    assert_eq!(told(&store, &operation("acme", "begun")).await, heard());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_moves_from_a_file_to_a_key_service() {
    let server = tokio::task::spawn_blocking(kms::start).await.unwrap().unwrap();
    let arn = kms::create_key(&server).unwrap();
    let world = World::new();
    complete(&world.open(Encryption::new(master(1))).await, &operation("acme", "k")).await;
    let both = Encryption::new(key(&arn, server.url())).following(master(1));
    assert_eq!(rewrap(&world.rows, &both).await.unwrap().rewrapped, 1);
    let alone = world.open(Encryption::new(key(&arn, server.url()))).await;
    assert_eq!(told(&alone, &operation("acme", "k")).await, heard());
}
