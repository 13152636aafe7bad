//! The fingerprint keys of tenants that asked lately.

use hapax_core::{Salt, Tenant, TenantKey};
use quick_cache::sync;

/// Most tenants whose keys are remembered.
const REMEMBERED_MAX: usize = 4096;

/// Keys the fingerprints of each tenant. Deriving a key costs as much as using it, so those of
/// tenants that asked lately are remembered.
///
/// ```
/// use hapax_core::{RequestParts, Salt, Tenant};
/// use hapax_engine::TenantKeys;
///
/// let keys = TenantKeys::new(Salt::from_bytes([7; 32]));
/// let (acme, umbrella) = (Tenant::parse("acme")?, Tenant::parse("umbrella")?);
/// let request = RequestParts { body: b"100", ..RequestParts::default() };
/// assert_ne!(keys.get(&acme).fingerprint(&request), keys.get(&umbrella).fingerprint(&request));
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Debug)]
pub struct TenantKeys {
    salt: Salt,
    remembered: sync::Cache<Tenant, TenantKey>,
}

impl TenantKeys {
    /// The keys that this store's salt gives to its tenants.
    pub fn new(salt: Salt) -> Self {
        Self { salt, remembered: sync::Cache::new(REMEMBERED_MAX) }
    }

    /// The key of a tenant.
    pub fn get(&self, tenant: &Tenant) -> TenantKey {
        if let Some(known) = self.remembered.get(tenant) {
            return known;
        }
        let derived = self.salt.tenant_key(tenant);
        self.remembered.insert(tenant.clone(), derived.clone());
        derived
    }

    /// The salt they are derived from.
    pub fn salt(&self) -> Salt {
        self.salt
    }
}
