//! What an address says about its store: the one place where addresses are told apart.

/// The kind of store that an address names.
///
/// ```
/// use hapax_core::store::StoreScheme;
///
/// assert_eq!(StoreScheme::of("sqlite:hapax.db"), Some(StoreScheme::Sqlite { path: "hapax.db" }));
/// assert_eq!(StoreScheme::of("postgres://shop@db/shop"), Some(StoreScheme::Postgres));
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
    /// `postgres://…` or `postgresql://…`
    Postgres,
}

impl<'a> StoreScheme<'a> {
    /// What this address names; `None` if it is no store's.
    pub fn of(address: &'a str) -> Option<Self> {
        match address.split_once(':')? {
            ("memory", "") => Some(Self::Memory),
            ("sqlite", path) if !path.is_empty() => Some(Self::Sqlite { path }),
            ("postgres" | "postgresql", rest) if rest.starts_with("//") => Some(Self::Postgres),
            (_, _) => None,
        }
    }
}
