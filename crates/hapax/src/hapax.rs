//! The front door.

use std::time::Duration;

use hapax_core::DynStore;
use hapax_encryption::{Encryption, KEYS_SEEN_FOR};
use hapax_engine::{Engine, Options};
use serde::Serialize;

use crate::{
    address::StoreAddress,
    once::{Once, OperationName},
    open::{Access, OpenError, OpenStore},
};

/// One effect per key: opens a store, and runs things once. Clones share everything.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # async fn charge(cents: u64) -> Result<String, std::io::Error> { Ok(format!("paid {cents}")) }
/// let hapax = hapax::Hapax::open("memory:").await?;
/// let receipt = hapax.once(("payments", "order-17"), &100, || charge(100)).await?;
/// // Again, after a crash or a lost answer: nobody is charged, and the receipt is the first one.
/// assert_eq!(hapax.once(("payments", "order-17"), &100, || charge(100)).await?, receipt);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Hapax {
    engine: Engine,
}

impl Hapax {
    /// Opens the store at this address, makes it if it is not there, and starts the tasks that look
    /// after it. Must be called on a tokio runtime.
    ///
    /// `sqlite:PATH`, `postgres://user@host:port/database` (feature `postgres`) or `memory:`.
    pub async fn open(address: &str) -> Result<Self, OpenError> {
        let address: StoreAddress = address.parse()?;
        Ok(Self::on(OpenStore::open(&address, Access::Keep).await?.into_dyn()))
    }

    /// The same, with what users sent and were answered encrypted in the store.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let text = "5f".repeat(32);
    /// use hapax::{Encryption, Hapax, LocalMasterKey};
    ///
    /// // `text` is what `openssl rand -base64 32` prints, from wherever you keep secrets.
    /// let encryption = Encryption::new(LocalMasterKey::parse(&text)?);
    /// let hapax = Hapax::open_encrypted("memory:", encryption).await?;
    /// # drop(hapax);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn open_encrypted(address: &str, encryption: Encryption) -> Result<Self, OpenError> {
        let address: StoreAddress = address.parse()?;
        let store = OpenStore::open(&address, Access::Keep).await?.encrypted(encryption).await?;
        // What was erased in the store must not be told from memory.
        let cache_cleared_every = Some(KEYS_SEEN_FOR);
        let options = Options { cache_cleared_every, ..Options::default() };
        Ok(Self::with(Engine::start(store, options)))
    }

    /// On a store that is open already. Must be called on a tokio runtime.
    pub fn on(store: impl Into<DynStore>) -> Self {
        Self::with(Engine::start(store, Options::default()))
    }

    /// On an engine that was started with options of its own.
    pub fn with(engine: Engine) -> Self {
        Self { engine }
    }

    /// Runs `work` once for this operation, and answers every later call with what it came to.
    ///
    /// The operation is a pair of scope and key, or tenant, scope and key. The request is what makes
    /// two calls the same: another one under a used key is refused. It and the result are kept as
    /// JSON. Await the returned [`Once`], after saying what is special about it.
    ///
    /// An error of the work leaves a **doubt**, because nobody knows whether it had its effect, unless
    /// it says otherwise: [`EffectError::not_sent`](crate::EffectError::not_sent) frees the key,
    /// [`EffectError::is_final`](crate::EffectError::is_final) is kept and told to everybody who asks.
    ///
    /// Dropping the future in mid-work leaves the same doubt.
    pub fn once<'a, R, W>(
        &'a self,
        operation: impl Into<OperationName<'a>>,
        request: &R,
        work: W,
    ) -> Once<'a, W>
    where
        R: Serialize + ?Sized,
    {
        Once::new(&self.engine, operation.into(), serde_json::to_value(request), work)
    }

    /// A layer around services that are reached by HTTP: whatever changes something needs an
    /// `Idempotency-Key`, runs once for it, and is answered with the first answer from then on.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use axum::{Router, routing::post};
    /// use hapax::{Hapax, tower::Tenancy};
    ///
    /// let hapax = Hapax::open("memory:").await?;
    /// let app: Router = Router::new()
    ///     .route("/payments", post(|| async { "paid" }))
    ///     .layer(hapax.layer(Tenancy::credential()));
    /// # drop(app);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tower")]
    pub fn layer(&self, tenancy: hapax_tower::Tenancy) -> hapax_tower::IdempotencyLayer {
        hapax_tower::IdempotencyLayer::everywhere(self.engine.clone(), tenancy)
    }

    /// The engine underneath: leases, steps, queues, and what it has done so far.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Begins nothing new, and waits up to `patience` for what runs here to settle. Says whether
    /// everything did; what did not is left to its lease.
    pub async fn shut_down(&self, patience: Duration) -> bool {
        self.engine.shut_down(patience).await
    }
}
