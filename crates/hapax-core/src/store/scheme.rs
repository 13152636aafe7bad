//! What an address says about its store: the one place where addresses are told apart.

/// The kind of store that an address names.
///
/// ```
/// use hapax_core::store::StoreScheme;
///
/// assert_eq!(StoreScheme::of("sqlite:hapax.db"), Some(StoreScheme::Sqlite { path: "hapax.db" }));
/// assert_eq!(StoreScheme::of("postgres://shop@db/shop"), Some(StoreScheme::Postgres));
/// assert_eq!(StoreScheme::of("host=db dbname=shop"), Some(StoreScheme::Postgres));
/// assert_eq!(StoreScheme::of("address-file:store"), Some(StoreScheme::InFile { path: "store" }));
/// assert_eq!(StoreScheme::of("mysql://shop@db/shop"), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreScheme<'a> {
    /// `memory:`
    Memory,
    /// `sqlite:PATH`
    Sqlite {
        /// Where the file is.
        path: &'a str,
    },
    /// `postgres://…`, `postgresql://…` or `host=… dbname=…`
    Postgres,
    /// `address-file:PATH`: the address is in a file, which is read again for each connection.
    InFile {
        /// Where the file is.
        path: &'a str,
    },
}

impl<'a> StoreScheme<'a> {
    /// What this address names; `None` if it is no store's.
    pub fn of(address: &'a str) -> Option<Self> {
        // Parameters of PostgreSQL: no scheme has such a name.
        if let Some((name, _)) = address.split_once('=')
            && name.trim().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        {
            return Some(Self::Postgres);
        }
        match address.split_once(':')? {
            ("address-file", path) if !path.is_empty() => Some(Self::InFile { path }),
            ("memory", "") => Some(Self::Memory),
            ("sqlite", path) if !path.is_empty() => Some(Self::Sqlite { path }),
            ("postgres" | "postgresql", rest) if rest.starts_with("//") => Some(Self::Postgres),
            (_, _) => None,
        }
    }
}
