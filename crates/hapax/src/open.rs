//! Opens the store behind an address.

use std::{io, path::PathBuf};

use hapax_core::{DynStore, Salt, memory};
use hapax_encryption::{EncryptedStore, Encryption, EncryptionError};
use hapax_engine::wall_clock;

use crate::address::{InvalidAddress, StoreAddress};

/// What a store is opened for.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Access, OpenStore, StoreAddress};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("hapax.db");
/// let address: StoreAddress = format!("sqlite:{}", path.display()).parse()?;
/// assert!(OpenStore::open(&address, Access::Look).await.is_err(), "it is not there yet");
/// OpenStore::open(&address, Access::Keep).await?;
/// OpenStore::open(&address, Access::Look).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To serve from it: it is made if it is not there, and brought up to date.
    Keep,
    /// To change what is in it: it is brought up to date, but not made.
    Change,
    /// To look at it: it is left as it is, and the right to write is not needed.
    Look,
}

/// A store that is open. Clones share it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use hapax::{Access, Engine, Hapax, OpenStore, Options, secs};
///
/// let store = OpenStore::open(&"memory:".parse()?, Access::Keep).await?;
/// // An engine with options of its own, which `Hapax::open` does not ask for.
/// let options = Options { sweep_every: secs(1), ..Options::default() };
/// let hapax = Hapax::with(Engine::start(store.into_dyn(), options));
/// # drop(hapax);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub enum OpenStore {
    /// In memory.
    Memory(memory::Store),
    /// In a file.
    #[cfg(feature = "sqlite")]
    Sqlite(hapax_sqlite::Store),
    /// In a database of PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(hapax_postgres::Store),
}

impl OpenStore {
    /// Opens the store at this address.
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(unused_variables, reason = "a store in memory is opened in one way only")
    )]
    pub async fn open(address: &StoreAddress, access: Access) -> Result<Self, OpenError> {
        match address {
            StoreAddress::Memory => {
                Ok(Self::Memory(memory::Store::new(draw_salt()?, || wall_clock().into())))
            }
            #[cfg(feature = "sqlite")]
            StoreAddress::Sqlite(path) => Ok(Self::Sqlite(sqlite(path, access).await?)),
            #[cfg(not(feature = "sqlite"))]
            StoreAddress::Sqlite(_) => Err(OpenError::NoSqlite),
            #[cfg(feature = "postgres")]
            StoreAddress::Postgres(address) => {
                let connect = |migrate| {
                    let options = hapax_postgres::Options { migrate, ..Default::default() };
                    hapax_postgres::Store::connect(address, options)
                };
                Ok(Self::Postgres(postgres(access, connect).await?))
            }
        }
    }

    /// The store without its type, with what users sent and were answered encrypted in it. Refuses a
    /// master key that is not the one of this store.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use hapax::{Access, Encryption, Hapax, LocalMasterKey, OpenStore};
    ///
    /// let store = OpenStore::open(&"memory:".parse()?, Access::Keep).await?;
    /// let encryption = Encryption::new(LocalMasterKey::from_bytes(&[7; 32]));
    /// let hapax = Hapax::on(store.encrypted(encryption).await?);
    /// # drop(hapax);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn encrypted(self, encryption: Encryption) -> Result<DynStore, OpenError> {
        Ok(match self {
            Self::Memory(store) => EncryptedStore::new(store, encryption).await?.into(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => EncryptedStore::new(store, encryption).await?.into(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => EncryptedStore::new(store, encryption).await?.into(),
        })
    }

    /// The store without its type, as an engine takes it.
    pub fn into_dyn(self) -> DynStore {
        match self {
            Self::Memory(store) => store.into(),
            #[cfg(feature = "sqlite")]
            Self::Sqlite(store) => store.into(),
            #[cfg(feature = "postgres")]
            Self::Postgres(store) => store.into(),
        }
    }
}

/// What cannot be encrypted: see the messages of [`EncryptionError`].
impl From<EncryptionError> for OpenError {
    fn from(error: EncryptionError) -> Self {
        Self::Encryption(Box::new(error))
    }
}

/// Opens the store in this file.
#[cfg(feature = "sqlite")]
pub async fn sqlite(
    path: &std::path::Path,
    access: Access,
) -> Result<hapax_sqlite::Store, OpenError> {
    use hapax_sqlite::{OpenError as NotOpen, Options, Store};
    if access != Access::Keep && !path.exists() {
        return Err(OpenError::NoFile { path: path.to_owned() });
    }
    let path = path.to_owned();
    let opening = move || {
        let options = Options::default();
        match access {
            Access::Keep => Store::open(path, options),
            Access::Look => Store::open_to_read(path, options),
            Access::Change => match Store::open_to_read(&path, options.clone()) {
                // There are no tables: it is another file than the one that was meant.
                Err(error @ NotOpen::NotMigrated { found: 0, .. }) => Err(error),
                Ok(_) | Err(_) => Store::open(path, options),
            },
        }
    };
    let opened = tokio::task::spawn_blocking(opening).await;
    let opened = opened.map_err(|error| OpenError::System(io::Error::other(error)))?;
    opened.map_err(|error| OpenError::Sqlite(Box::new(error)))
}

/// Connects to a server; `connect` is told whether it may migrate the schema.
#[cfg(feature = "postgres")]
pub async fn postgres<T, F>(access: Access, connect: impl Fn(bool) -> F) -> Result<T, OpenError>
where
    F: Future<Output = Result<T, hapax_postgres::OpenError>>,
{
    let opened = match (access, connect(access == Access::Keep).await) {
        // There is a schema, of an older version.
        (Access::Change, Err(hapax_postgres::OpenError::NotMigrated { found: 1.. })) => {
            connect(true).await
        }
        (Access::Keep | Access::Change | Access::Look, opened) => opened,
    };
    opened.map_err(|error| OpenError::Postgres(Box::new(error)))
}

/// Why a store could not be opened, as what to do about it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use hapax::{Hapax, InvalidAddress, OpenError};
///
/// let refused = Hapax::open("mysql://shop@db/shop").await;
/// assert!(matches!(refused, Err(OpenError::Address(InvalidAddress::Unknown))));
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The address names no store.
    #[error("the address of the store cannot be used")]
    Address(#[from] InvalidAddress),
    /// There is nothing to look at or to change.
    #[error("there is no file {}; name the store that is meant, as sqlite:PATH or postgres://...", path.display())]
    NoFile {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// This program was built without SQLite.
    #[cfg(not(feature = "sqlite"))]
    #[error("this program was built without SQLite; add the feature `sqlite` of `hapax`")]
    NoSqlite,
    /// The file cannot be used.
    #[cfg(feature = "sqlite")]
    #[error("the SQLite store cannot be opened")]
    Sqlite(#[source] Box<hapax_sqlite::OpenError>),
    /// The server or its schema cannot be used.
    #[cfg(feature = "postgres")]
    #[error("the PostgreSQL store cannot be opened")]
    Postgres(#[source] Box<hapax_postgres::OpenError>),
    /// The master key is not the one this store was encrypted with, or the data keys cannot be read.
    #[error("the store cannot be encrypted or decrypted")]
    Encryption(#[source] Box<EncryptionError>),
    /// The operating system gave no randomness, or no thread.
    #[error("the operating system refused what a store needs")]
    System(#[source] io::Error),
}

fn draw_salt() -> Result<Salt, OpenError> {
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).map_err(|error| OpenError::System(io::Error::other(error)))?;
    Ok(Salt::from_bytes(salt))
}
