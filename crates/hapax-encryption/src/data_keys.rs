//! Finds the data keys of tenants, makes new ones, and remembers those that were used lately.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use hapax_core::{
    StoreError, Tenant, Timestamp,
    limits::LEASE_MAX,
    store::{DataKeyId, DataKeyState, KeyStorage, StoredDataKey, WrappedKey},
};
use quick_cache::sync;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::{
    sync::Mutex as AsyncMutex,
    time::{Instant, sleep},
};

use crate::{
    encryption::{Encryption, KEYS_SEEN_FOR},
    key_ring::{KeyRing, RingKey, RingKeyState},
    master_key::{DataKeyBytes, MasterKeyError},
    sealing::{NotSealed, SealingKey},
};

/// Most tenants whose keys are remembered.
const TENANTS_MAX: usize = 1 << 14;
/// Tenants that may be looked up at the same time.
const TURNS: usize = 64;
/// Times a new key is tried again because somebody else made one.
const ROUNDS_MAX: usize = 8;
/// How long a master key that could not be reached is not asked again: whoever needs it is told at once,
/// and does not hold up others.
const MASTER_AWAY: Duration = Duration::from_secs(1);

/// The data keys of all tenants.
#[derive(Debug)]
pub(crate) struct DataKeys {
    encryption: Encryption,
    rings: sync::Cache<Tenant, Arc<KeyRing>>,
    turns: Vec<AsyncMutex<()>>,
    hasher: RandomState,
    /// Until when the master key is taken to be away, and why.
    away: Mutex<Option<(Instant, StoreError)>>,
}

/// What a key is needed for.
#[derive(Debug, Clone, Copy)]
enum DataKeyNeed {
    Seal,
    Open { version: u32 },
}

/// What became of the key that something was sealed with.
pub(crate) enum OpeningKey {
    Usable(Arc<SealingKey>),
    Erased,
}

impl DataKeys {
    fn new(encryption: Encryption) -> Self {
        let turns = std::iter::repeat_with(AsyncMutex::default).take(TURNS).collect();
        let (rings, hasher) = (sync::Cache::new(TENANTS_MAX), RandomState::new());
        Self { encryption, rings, turns, hasher, away: Mutex::default() }
    }

    /// The same, forgetting idle keys while anybody uses them. Must be called on a tokio runtime.
    pub(crate) fn start(encryption: Encryption) -> Arc<Self> {
        let keys = Arc::new(Self::new(encryption));
        tokio::spawn(forget_idle_keys(Arc::downgrade(&keys)));
        keys
    }

    /// The key that sealed for this tenant lately, without a look at the store: for where that would wait
    /// for a transaction which waits for this.
    pub(crate) fn at_hand(&self, tenant: &Tenant) -> Option<Arc<SealingKey>> {
        self.rings.get(tenant)?.seals.clone()
    }

    /// The key that seals for this tenant, made now if there is none, or only one that is too old.
    pub(crate) async fn to_seal<S: KeyStorage>(
        &self,
        storage: &S,
        tenant: &Tenant,
    ) -> Result<Arc<SealingKey>, StoreError> {
        let ring = match self.remembered(tenant, DataKeyNeed::Seal) {
            Some(ring) => ring,
            None => self.look_up(storage, tenant, DataKeyNeed::Seal).await?,
        };
        ring.seals.clone().ok_or_else(|| StoreError::unavailable(NO_KEY))
    }

    /// The key that sealed something of this tenant; an error if there is none.
    pub(crate) async fn to_open<S: KeyStorage>(
        &self,
        storage: &S,
        tenant: &Tenant,
        version: u32,
    ) -> Result<OpeningKey, StoreError> {
        let found = self.find(storage, tenant, version).await?;
        found.ok_or_else(|| {
            StoreError::damaged(format!(
                "it is encrypted with data key {version} of its tenant, of which the store has no trace"
            ))
        })
    }

    /// The key that sealed something of this tenant, if there is a trace of it.
    pub(crate) async fn find<S: KeyStorage>(
        &self,
        storage: &S,
        tenant: &Tenant,
        version: u32,
    ) -> Result<Option<OpeningKey>, StoreError> {
        let need = DataKeyNeed::Open { version };
        let ring = match self.remembered(tenant, need) {
            Some(ring) => ring,
            None => self.look_up(storage, tenant, need).await?,
        };
        match ring.find(version).map(|key| &key.state) {
            Some(RingKeyState::Usable(key)) => Ok(Some(OpeningKey::Usable(Arc::clone(key)))),
            Some(RingKeyState::Erased) => Ok(Some(OpeningKey::Erased)),
            Some(RingKeyState::Locked(error)) => Err(error.clone()),
            None => Ok(None),
        }
    }

    /// What is known of a tenant, if that is recent and enough.
    fn remembered(&self, tenant: &Tenant, need: DataKeyNeed) -> Option<Arc<KeyRing>> {
        let ring = self.rings.get(tenant)?;
        let is_enough = match need {
            DataKeyNeed::Seal => ring.seals.is_some(),
            DataKeyNeed::Open { version } => ring.find(version).is_some(),
        };
        (is_enough && ring.read_at.elapsed() < KEYS_SEEN_FOR).then_some(ring)
    }

    async fn look_up<S: KeyStorage>(
        &self,
        storage: &S,
        tenant: &Tenant,
        need: DataKeyNeed,
    ) -> Result<Arc<KeyRing>, StoreError> {
        let turn = usize::try_from(self.hasher.hash_one(tenant)).unwrap_or(0) % TURNS;
        let _turn = self.turns[turn].lock().await;
        if let Some(ring) = self.remembered(tenant, need) {
            return Ok(ring);
        }
        let mut made = None;
        for _ in 0..ROUNDS_MAX {
            let ring = Arc::new(self.read(storage, tenant, made.take()).await?);
            self.rings.insert(tenant.clone(), Arc::clone(&ring));
            match need {
                DataKeyNeed::Seal if ring.seals.is_none() => {
                    if let Some(error) = ring.locked() {
                        return Err(error.clone());
                    }
                }
                DataKeyNeed::Seal | DataKeyNeed::Open { .. } => return Ok(ring),
            }
            let id = DataKeyId { tenant: tenant.clone(), version: ring.next_version() };
            made = self.make(storage, id).await?;
        }
        Err(StoreError::unavailable("others make keys for the same tenant all the time"))
    }

    /// Reads the keys of a tenant, and unwraps those that were not before. `made` was just added here.
    async fn read<S: KeyStorage>(
        &self,
        storage: &S,
        tenant: &Tenant,
        made: Option<Arc<SealingKey>>,
    ) -> Result<KeyRing, StoreError> {
        let (before, read_at) = (self.rings.get(tenant), Instant::now());
        let stored = storage.data_keys(tenant.clone()).await.map_err(nothing_written)?;
        let mut keys = Vec::with_capacity(stored.keys.len());
        for key in stored.keys {
            let before = before.as_ref().and_then(|ring| ring.unwrapped(&key.id, key.created_at));
            let made = made.as_ref().filter(|made| made.version() == key.id.version);
            let (version, created_at) = (key.id.version, key.created_at);
            let state = match (&key.state, before, made) {
                (DataKeyState::Erased { .. }, _, _) => RingKeyState::Erased,
                (DataKeyState::Kept(_), Some(before), _) => before.state.clone(),
                (DataKeyState::Kept(_), None, Some(made)) => RingKeyState::Usable(Arc::clone(made)),
                (DataKeyState::Kept(wrapped), None, None) => self.unwrap(&key, wrapped).await?,
            };
            keys.push(RingKey { version, created_at, state });
        }
        let seals = newest(&keys).filter(|(_, created_at)| !self.is_old(*created_at, stored.now));
        let seals = seals.map(|(key, _)| Arc::clone(key));
        Ok(KeyRing { keys, seals, read_at })
    }

    fn is_old(&self, created_at: Timestamp, now: Timestamp) -> bool {
        self.encryption.rotate_after.is_some_and(|after| created_at.plus(after) <= now)
    }

    async fn unwrap(
        &self,
        key: &StoredDataKey,
        wrapped: &WrappedKey,
    ) -> Result<RingKeyState, StoreError> {
        let Some(master) = self.encryption.master_named(&wrapped.master) else {
            // Not damage: another process, or this one after its next start, can read it.
            return Ok(RingKeyState::Locked(StoreError::unavailable(format!(
                "its tenant's data key is wrapped by the master key {}, which this process was not given",
                wrapped.master
            ))));
        };
        self.is_reachable()?;
        match master.unwrap(&key.id, &wrapped.bytes).await {
            Ok(bytes) => {
                let key = SealingKey::new(key.id.version, &bytes);
                Ok(RingKeyState::Usable(Arc::new(key)))
            }
            Err(error @ MasterKeyError::Unavailable { .. }) => Err(self.away(error)),
            Err(error @ MasterKeyError::Refused { .. }) => {
                Ok(RingKeyState::Locked(StoreError::damaged(error)))
            }
        }
    }

    /// Makes a key and adds it to the store; `None` if somebody else added one first.
    async fn make<S: KeyStorage>(
        &self,
        storage: &S,
        id: DataKeyId,
    ) -> Result<Option<Arc<SealingKey>>, StoreError> {
        self.is_reachable()?;
        let mut bytes = DataKeyBytes::default();
        SystemRandom::new().fill(&mut *bytes).map_err(|_| StoreError::unavailable(NotSealed))?;
        let master = &self.encryption.master;
        let wrapped = master.wrap(&id, &bytes).await.map_err(|error| self.away(error))?;
        let wrapped = WrappedKey { master: master.name().to_owned(), bytes: wrapped };
        let key = Arc::new(SealingKey::new(id.version, &bytes));
        tracing::info!(version = id.version, master = master.name(), "a tenant gets a data key");
        let added = storage.add_data_key(id, wrapped).await.map_err(nothing_written)?;
        Ok(added.then_some(key))
    }

    fn is_reachable(&self) -> Result<(), StoreError> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        match &*away {
            Some((until, error)) if Instant::now() < *until => Err(error.clone()),
            Some(_) | None => Ok(()),
        }
    }

    fn away(&self, error: MasterKeyError) -> StoreError {
        let error = StoreError::unavailable(error);
        let until = Instant::now() + MASTER_AWAY;
        *self.away.lock().unwrap_or_else(PoisonError::into_inner) = Some((until, error.clone()));
        error
    }

    /// Forgets the keys of tenants that nobody asked for lately. Whoever is at work for one may need them
    /// for as long as a lease lasts.
    fn forget_idle(&self) {
        self.rings.retain(|_, ring| ring.read_at.elapsed() < LEASE_MAX);
    }
}

/// Wipes from memory the keys of tenants that nobody asked for lately, while anybody uses the others.
async fn forget_idle_keys(keys: Weak<DataKeys>) {
    loop {
        sleep(KEYS_SEEN_FOR).await;
        match keys.upgrade() {
            Some(keys) => keys.forget_idle(),
            None => return,
        }
    }
}

const NO_KEY: &str = "the tenant has no data key that can be used";

/// The newest key that can be used, and when it was made.
fn newest(keys: &[RingKey]) -> Option<(&Arc<SealingKey>, Timestamp)> {
    keys.iter().rev().find_map(|key| match &key.state {
        RingKeyState::Usable(usable) => Some((usable, key.created_at)),
        RingKeyState::Erased | RingKeyState::Locked(_) => None,
    })
}

/// Whatever became of a key, nothing was written of the record it is for.
fn nothing_written(error: StoreError) -> StoreError {
    match error {
        StoreError::Unconfirmed(cause) => StoreError::Unavailable(cause),
        StoreError::Unavailable(_) | StoreError::Damaged(_) | StoreError::TooNew(_) => error,
    }
}
